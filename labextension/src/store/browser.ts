import { ToolbarButton } from '@jupyterlab/apputils';
import {
  Uploader,
  type FileBrowser,
  type IFileBrowserFactory
} from '@jupyterlab/filebrowser';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import { MessageLoop } from '@lumino/messaging';

import { ohIcon } from '../log/icons.js';
import { DRIVE_NAME } from './drive.js';

/** Whoever wants to see what has changed refreshes: a store may be far away, and large. */
const REFRESH_INTERVAL_MS = 24 * 3600 * 1000;

export const STORE_BROWSER_ID = 'oh-jupyter-store';

/**
 * A file browser of the drive of stores.
 *
 * @param onShown - Called when a person opens it.
 * @param onDeliveries - Called when a person wants to see what was not delivered.
 */
export function makeStoreBrowser(
  factory: IFileBrowserFactory,
  onShown: () => void,
  onDeliveries: () => void,
  translator: ITranslator,
  trans: TranslationBundle
): FileBrowser {
  const browser = factory.createFileBrowser(STORE_BROWSER_ID, {
    auto: false,
    driveName: DRIVE_NAME,
    refreshInterval: REFRESH_INTERVAL_MS,
    restore: false,
    state: null
  });
  browser.title.icon = ohIcon;
  browser.title.caption = trans.__('OpenHands: files of the store');
  browser.node.setAttribute('role', 'region');
  browser.node.setAttribute('aria-label', trans.__('Files of the store'));
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
  MessageLoop.installMessageHook(browser, (_, message) => {
    if (message.type === 'after-show') {
      onShown();
    }
    return true;
  });
  return browser;
}
