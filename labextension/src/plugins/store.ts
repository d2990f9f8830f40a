import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { IFileBrowserFactory, type FileBrowser } from '@jupyterlab/filebrowser';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { hasRuntime, serverKernels } from '../running/kernels.js';
import { StoreApi } from '../store/api.js';
import {
  makeStoreBrowser,
  STORE_BROWSER_ID,
  StorePanel
} from '../store/browser.js';
import { StoreDrive } from '../store/drive.js';
import { kernelFolder, storePlace } from '../store/paths.js';
import { IOhRuntime } from '../tokens.js';
import { listCommands, NO_ARGS, tellFailure, TOAST } from './registration.js';

/** Shows the stores of kernels as a drive of the file browser. */
export const storePlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:store',
  description: 'A file browser of what runtimes keep in their stores.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IFileBrowserFactory
  ],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    factory: IFileBrowserFactory | null
  ): void => {
    const { contents, serverSettings } = app.serviceManager;
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    const drive = new StoreDrive(
      new StoreApi(serverSettings),
      () => serverKernels(app.serviceManager),
      kernel => hasRuntime(serverSettings, kernel),
      (listed, total) =>
        Notification.info(
          trans.__('%2 entries; the first %1 are listed.', listed, total),
          TOAST
        ),
      trans
    );
    contents.addDrive(drive);
    if (!factory) {
      return;
    }
    const makeBrowser = () => {
      const browser = makeStoreBrowser(
        factory,
        () => void app.commands.execute(CommandIDs.showDeliveries),
        translator ?? nullTranslator,
        trans
      );
      const refresh = () => void browser.model.refresh();
      drive.fileChanged.connect(refresh);
      browser.disposed.connect(() => drive.fileChanged.disconnect(refresh));
      browser.model.connectionFailure.connect((_, error) => tellFailure(error));
      return browser;
    };
    /** The store of the notebook in front, where it was left, or all. */
    const open = async ({ model }: FileBrowser, lastPath: string) => {
      const { sessionContext, state } = runtime.current ?? {};
      const id = sessionContext?.session?.kernel?.id;
      const kernel =
        state === 'ready'
          ? serverKernels(app.serviceManager).find(each => each.id === id)
          : undefined;
      const folder = kernel ? kernelFolder(kernel.name, kernel.id) : '';
      const last = contents.localPath(lastPath);
      const path = storePlace(last).folder === folder ? last : folder;
      await (path ? model.cd(`/${path}`) : model.refresh());
    };
    const panel = new StorePanel(
      makeBrowser,
      (browser, lastPath) => void open(browser, lastPath).catch(tellFailure),
      trans
    );
    app.shell.add(panel, 'left', { rank: 104, type: 'OpenHands' });
    restorer?.add(panel, STORE_BROWSER_ID);
    app.commands.addCommand(CommandIDs.showStore, {
      label: trans.__('OpenHands Store'),
      caption: trans.__('Browse the files that the runtime of a kernel keeps'),
      icon: ohIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(STORE_BROWSER_ID)
    });
    listCommands(palette, trans, CommandIDs.showStore);
  }
};
