import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { RuntimesManager } from '../running/manager.js';
import { IOhRuntime } from '../tokens.js';

/** Lists runtimes, with what they have started, among the running sessions. */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:running',
  description: 'Runtimes, shells, browsers and agents of the open notebooks.',
  autoStart: true,
  requires: [IOhRuntime, INotebookTracker, IRunningSessionManagers],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    notebooks: INotebookTracker,
    managers: IRunningSessionManagers,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    managers.add(
      new RuntimesManager(
        app.shell,
        notebooks,
        runtime,
        app.serviceManager.serverSettings,
        trans,
        error => {
          const reason = error instanceof Error ? error.message : String(error);
          Notification.error(reason, { autoClose: 6000 });
        }
      )
    );
  }
};
