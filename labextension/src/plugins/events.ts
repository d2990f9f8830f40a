import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';

import { EventsApi } from '../events/api.js';
import { OhRuntime } from '../events/runtime.js';
import { IOhRuntime } from '../tokens.js';

/** Provider of the events of the current notebook. */
export const eventsPlugin: JupyterFrontEndPlugin<IOhRuntime> = {
  id: 'oh-jupyter:events',
  description:
    'Provides the actions and observations of the current notebook or of a fleet.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [IConsoleTracker],
  provides: IOhRuntime,
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    consoles: IConsoleTracker | null
  ): IOhRuntime => {
    const { events, serverSettings, sessions } = app.serviceManager;
    const api = new EventsApi(serverSettings);
    return new OhRuntime(
      app.shell,
      notebooks,
      consoles,
      sessions,
      api,
      events.stream
    );
  }
};
