import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { IContextItem } from '../agent/context.js';
import { ErrorBars } from '../agent/errors.js';
import type { AgentModel } from '../agent/model.js';
import { cellItem, errorItem } from '../agent/notebook.js';
import { panelOf } from '../cells/notebook.js';
import { CommandIDs } from '../ids.js';
import { agentIcon } from '../log/icons.js';
import type { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import { argsOf, followState } from './registration.js';

/** Commands for a cell, in the order of menus. */
export const CELL_PROMPTS = [
  CommandIDs.askAboutCell,
  CommandIDs.explainCell,
  CommandIDs.fixError
] as const;

const CELL_ARGS = argsOf({
  cell: {
    type: 'string',
    description: 'Id of the cell; by default, the current one.'
  }
});

interface ICellPrompt {
  readonly id: string;
  readonly label: string;
  readonly caption: string;
  /** Whether it is offered only for cells with an error. */
  readonly isForErrors: boolean;
  /** Text that is sent at once; null to let the person write it. */
  readonly prompt: ((cell: string) => string) | null;
}

/** Add commands that ask an agent about a cell, and buttons below errors. */
export function addCellPrompts(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  notebooks: INotebookTracker,
  agents: AgentModel,
  open: () => Promise<unknown>
): void {
  const current = () =>
    runtime.current?.state === 'ready'
      ? panelOf(notebooks, runtime.current)
      : undefined;
  const add = ({ id, label, caption, isForErrors, prompt }: ICellPrompt) =>
    app.commands.addCommand(id, {
      label,
      caption,
      icon: agentIcon,
      describedBy: CELL_ARGS,
      isVisible: args => {
        const panel = current();
        const index = panel ? indexOf(panel, args.cell) : -1;
        return (
          panel !== undefined &&
          (isForErrors
            ? errorItem(panel, index) !== null
            : cellItem(panel, index) !== null)
        );
      },
      execute: async args => {
        const panel = current();
        const items = panel ? itemsOf(panel, args.cell) : [];
        await open();
        if (prompt && items[0]) {
          const text = prompt(items[0].name);
          await agents.sendText(text, { context: items });
        } else {
          agents.box?.add(...items);
        }
      }
    });
  add({
    id: CommandIDs.askAboutCell,
    label: trans.__('Agent: Ask About This Cell'),
    caption: trans.__('Add this cell to the prompt for an agent'),
    isForErrors: false,
    prompt: null
  });
  add({
    id: CommandIDs.explainCell,
    label: trans.__('Agent: Explain This Cell'),
    caption: trans.__('Let an agent explain this cell'),
    isForErrors: false,
    prompt: cell => trans.__('Explain %1. Change nothing.', cell)
  });
  add({
    id: CommandIDs.fixError,
    label: trans.__('Agent: Fix This Error'),
    caption: trans.__('Let an agent fix the error of this cell'),
    isForErrors: true,
    prompt: cell => trans.__('Fix the error of %1.', cell)
  });
  new ErrorBars(runtime, notebooks, (id, cell) =>
    app.commands.execute(id, { cell })
  );
  // A button in a toolbar follows changes of its own command only.
  const notify = () => {
    for (const id of CELL_PROMPTS) {
      app.commands.notifyCommandChanged(id);
    }
  };
  notebooks.activeCellChanged.connect(notify);
  followState(runtime, notify);
}

/** Return a cell and its error, if it has one. */
function itemsOf(panel: NotebookPanel, id: unknown): readonly IContextItem[] {
  const index = indexOf(panel, id);
  return [cellItem, errorItem]
    .map(read => read(panel, index))
    .filter(item => item !== null);
}

/** Return the index of a cell by its id, or of the current cell. */
function indexOf({ content }: NotebookPanel, id: unknown): number {
  return typeof id === 'string'
    ? content.widgets.findIndex(({ model }) => model.id === id)
    : content.activeCellIndex;
}
