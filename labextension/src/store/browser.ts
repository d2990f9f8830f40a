import { ToolbarButton } from '@jupyterlab/apputils';
import {
  Uploader,
  type FileBrowser,
  type IFileBrowserFactory
} from '@jupyterlab/filebrowser';
import type { ITranslator } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import { StackedPanel } from '@lumino/widgets';

import { deliveriesIcon, storeIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import { DRIVE_NAME } from './drive.js';

/** No automatic refresh, because a store may be remote and large. */
const REFRESH_INTERVAL_MS = 24 * 3600 * 1000;

export const STORE_BROWSER_ID = 'oh-jupyter-store';

/**
 * Panel with a file browser of the stores, which exists only while visible.
 *
 * JupyterLab would take it for the current file browser and create new notebooks in the store.
 */
export class StorePanel extends StackedPanel {
  constructor(
    private readonly _makeBrowser: () => FileBrowser,
    private readonly _onShown: (browser: FileBrowser, lastPath: string) => void
  ) {
    super();
    this.id = STORE_BROWSER_ID;
    this.title.icon = storeIcon;
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

  private _browser: FileBrowser | null = null;
  private _lastPath = '';
}

export function makeStoreBrowser(
  factory: IFileBrowserFactory,
  onDeliveries: () => void,
  translator: ITranslator
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
      icon: deliveriesIcon,
      label: trans.__('Deliveries'),
      onClick: onDeliveries,
      tooltip: trans.__('Show changes that the webhook has not delivered')
    })
  );
  return browser;
}
