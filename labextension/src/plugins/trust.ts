import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';

import { OutputGuard } from '../trust/guard.js';
import { HeldKernels } from '../trust/kernels.js';
import { definePlugin } from './registration.js';

/** Outputs of sandboxed kernels without scripts, until a person allows them. */
export const trustPlugin = definePlugin({
  id: 'oh-jupyter:trust',
  description:
    'Shows outputs of sandboxed kernels without scripts, until they are allowed.',
  requires: [INotebookTracker],
  optional: [IConsoleTracker],
  activate: ({ serviceManager }, notebooks, consoles) => {
    const { kernels: manager, kernelspecs } = serviceManager;
    const kernels = new HeldKernels(manager, () => kernelspecs.specs);
    const guards = new Map<object, OutputGuard>();
    notebooks.widgetAdded.connect((_, panel) => {
      const { content, contentHeader, sessionContext } = panel;
      const { rendermime } = content;
      const cells = () => content.widgets;
      const guard = new OutputGuard(
        { sessionContext, rendermime, contentHeader, cells },
        kernels
      );
      guards.set(content, guard);
      panel.disposed.connect(() => {
        guard.dispose();
        guards.delete(content);
      });
    });
    NotebookActions.executionScheduled.connect((_, { notebook, cell }) =>
      guards.get(notebook)?.begin(cell.model)
    );
    NotebookActions.executed.connect((_, { notebook, cell }) =>
      guards.get(notebook)?.end(cell.model)
    );
    consoles?.widgetAdded.connect((_, panel) => {
      const { console, contentHeader, sessionContext } = panel;
      const { rendermime } = console;
      const cells = () => console.cells;
      const guard = new OutputGuard(
        { sessionContext, rendermime, contentHeader, cells },
        kernels
      );
      panel.disposed.connect(() => guard.dispose());
    });
  }
});
