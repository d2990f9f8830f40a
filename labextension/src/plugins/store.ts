import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IFileBrowserFactory, type FileBrowser } from '@jupyterlab/filebrowser';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { PanelLayout } from '@lumino/widgets';

import { CommandIDs } from '../ids.js';
import { storeIcon } from '../log/icons.js';
import { hasRuntime, serverKernels } from '../running/kernels.js';
import { StoreApi } from '../store/api.js';
import {
  makeStoreBrowser,
  STORE_BROWSER_ID,
  StorePanel
} from '../store/browser.js';
import { StoreDrive } from '../store/drive.js';
import { EmptyStore } from '../store/empty.js';
import { kernelFolder, parsePath } from '../store/paths.js';
import { TOAST } from '../notify.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  definePlugin,
  listCommands,
  NO_ARGS,
  notifyFailure
} from './registration.js';

/** File browser of the files that runtimes keep in their stores. */
export const storePlugin = definePlugin({
  id: 'oh-jupyter:store',
  description: 'Adds a file browser for the stores of runtimes.',
  requires: [IOhRuntime],
  optional: [
    ICommandPalette,
    ILayoutRestorer,
    IFileBrowserFactory,
    ITranslator
  ],
  activate: (app, runtime, palette, restorer, factory, translator) => {
    const { contents, serverSettings } = app.serviceManager;
    const drive = new StoreDrive(
      new StoreApi(serverSettings),
      () => serverKernels(app.serviceManager),
      kernel => hasRuntime(serverSettings, kernel),
      (listed, total) =>
        Notification.info(
          trans.__('Listed the first %1 of %2 entries.', listed, total),
          TOAST
        )
    );
    contents.addDrive(drive);
    if (!factory) {
      return;
    }
    const makeBrowser = () => {
      const browser = makeStoreBrowser(
        factory,
        () => void app.commands.execute(CommandIDs.showDeliveries),
        translator ?? nullTranslator
      );
      const empty = new EmptyStore(
        browser,
        path => contents.localPath(path),
        // Without a folder, JupyterLab would create it in the store.
        () => void app.commands.execute(CommandIDs.newNotebook, { cwd: '/' })
      );
      (browser.layout as PanelLayout).addWidget(empty);
      const refresh = () => void browser.model.refresh();
      drive.fileChanged.connect(refresh);
      browser.disposed.connect(() => drive.fileChanged.disconnect(refresh));
      browser.model.connectionFailure.connect((_, error) =>
        notifyFailure(error)
      );
      return browser;
    };
    // Reopen the last folder in the store of the current notebook, or list all stores.
    const open = async ({ model }: FileBrowser, lastPath: string) => {
      const { sessionContext, state } = runtime.current ?? {};
      const id = sessionContext?.session?.kernel?.id;
      const kernel =
        state === 'ready'
          ? serverKernels(app.serviceManager).find(each => each.id === id)
          : undefined;
      const folder = kernel ? kernelFolder(kernel.name, kernel.id) : '';
      const last = contents.localPath(lastPath);
      const path = parsePath(last).folder === folder ? last : folder;
      await (path ? model.cd(`/${path}`) : model.refresh());
    };
    const panel = new StorePanel(
      makeBrowser,
      (browser, lastPath) => void open(browser, lastPath).catch(notifyFailure)
    );
    app.shell.add(panel, 'left', { rank: 104, type: 'OpenHands' });
    restorer?.add(panel, STORE_BROWSER_ID);
    app.commands.addCommand(CommandIDs.showStore, {
      label: trans.__('Agent: Store'),
      caption: trans.__('Browse the files that a runtime keeps in its store'),
      icon: storeIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(STORE_BROWSER_ID)
    });
    listCommands(palette, CommandIDs.showStore);
  }
});
