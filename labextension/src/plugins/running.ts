import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { RuntimesManager } from '../running/manager.js';
import { IOhRuntime } from '../tokens.js';
import { tellFailure } from './registration.js';

/** Lists runtimes, with what they have started, among the running sessions. */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:running',
  description: 'Lists the runtimes of all kernels, and what they have started.',
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
      new RuntimesManager(app, notebooks, runtime, trans, tellFailure)
    );
  }
};
