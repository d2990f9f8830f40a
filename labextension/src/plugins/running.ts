import { INotebookTracker } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';

import { RuntimesManager } from '../running/manager.js';
import { IOhRuntime } from '../tokens.js';
import { definePlugin, notifyFailure } from './registration.js';

/** Section of runtimes in the list of running sessions. */
export const runningPlugin = definePlugin({
  id: 'oh-jupyter:running',
  description: 'Lists the runtimes of all kernels, and what they started.',
  requires: [IOhRuntime, INotebookTracker],
  // A page of Notebook 7 has no such list.
  optional: [IRunningSessionManagers],
  activate: (app, runtime, notebooks, managers) => {
    managers?.add(new RuntimesManager(app, notebooks, runtime, notifyFailure));
  }
});
