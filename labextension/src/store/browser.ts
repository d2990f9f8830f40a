import { ToolbarButton } from '@jupyterlab/apputils';
import {
  Uploader,
  type FileBrowser,
  type IFileBrowserFactory
} from '@jupyterlab/filebrowser';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { StackedPanel } from '@lumino/widgets';

import { ohIcon } from '../log/icons.js';
import { DRIVE_NAME } from './drive.js';

/** Whoever wants to see what has changed refreshes: a store may be far away, and large. */
const REFRESH_INTERVAL_MS = 24 * 3600 * 1000;

export const STORE_BROWSER_ID = 'oh-jupyter-store';

/**
 * The place of a file browser of the drive of stores.
 *
 * The browser is there while it is looked at. JupyterLab takes the browser that was added last for
 * the one that people work in, and would put new notebooks into the store.
 */
export class StorePanel extends StackedPanel {
  /**
   * @param makeBrowser - Makes the browser.
   * @param onShown - Called when a person opens it, with the path that was open before.
   */
  constructor(
    makeBrowser: () => FileBrowser,
    onShown: (browser: FileBrowser, lastPath: string) => void,
    trans: TranslationBundle
  ) {
    super();
    this._makeBrowser = makeBrowser;
    this._onShown = onShown;
    this.id = STORE_BROWSER_ID;
    this.title.icon = ohIcon;
    this.title.caption = trans.__('OpenHands: files of the store');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Files of the store'));
  }

  protected override onBeforeShow(message: Message): void {
    this._browser ??= this._makeBrowser();
    this.addWidget(this._browser);
    super.onBeforeShow(message);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    if (this._browser) {
      this._onShown(this._browser, this._lastPath);
    }
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._lastPath = this._browser?.model.path ?? this._lastPath;
    this._browser?.dispose();
    this._browser = null;
  }

  private readonly _makeBrowser: () => FileBrowser;
  private readonly _onShown: (browser: FileBrowser, lastPath: string) => void;
  private _browser: FileBrowser | null = null;
  private _lastPath = '';
}

/**
 * A file browser of the drive of stores.
 *
 * @param onDeliveries - Called when a person wants to see what was not delivered.
 */
export function makeStoreBrowser(
  factory: IFileBrowserFactory,
  onDeliveries: () => void,
  translator: ITranslator,
  trans: TranslationBundle
): FileBrowser {
  const browser = factory.createFileBrowser(`${STORE_BROWSER_ID}-files`, {
    auto: false,
    driveName: DRIVE_NAME,
    refreshInterval: REFRESH_INTERVAL_MS,
    restore: false,
    state: null
  });
  const { model, toolbar } = browser;
  toolbar.addItem('upload', new Uploader({ model, translator }));
  toolbar.addItem(
    'refresh',
    new ToolbarButton({
      icon: refreshIcon,
      onClick: () => void model.refresh(),
      tooltip: trans.__('Refresh')
    })
  );
  toolbar.addItem(
    'deliveries',
    new ToolbarButton({
      label: trans.__('Deliveries'),
      onClick: onDeliveries,
      tooltip: trans.__('What the receiver of the webhook does not have')
    })
  );
  return browser;
}
