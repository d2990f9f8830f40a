import type { ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { panelOf } from '../cells/notebook.js';
import { withoutAnsi } from '../log/status.js';
import { trans } from '../translation.js';
import type { IContextItem } from './context.js';
import type { AgentModel } from './model.js';

/** Return what the current cell offers: itself, its error, and its selected text. */
export function cellItems(panel: NotebookPanel): readonly IContextItem[] {
  const index = panel.content.activeCellIndex;
  return [cellItem, errorItem, selectionItem]
    .map(read => read(panel, index))
    .filter(item => item !== null);
}

export function cellItem(
  panel: NotebookPanel,
  index: number
): IContextItem | null {
  const cell = panel.content.widgets[index];
  return cell
    ? {
        kind: 'text',
        of: 'cell',
        name: trans.__('Cell %1', index + 1),
        id: address(panel, index),
        text: cell.model.sharedModel.getSource(),
        detail: cell.model.type
      }
    : null;
}

/** Return the traceback of a cell; null if it has none. */
export function errorItem(
  panel: NotebookPanel,
  index: number
): IContextItem | null {
  const model = panel.content.widgets[index]?.model;
  const error = model ? errorOf(model as ICodeCellModel) : null;
  return error === null
    ? null
    : {
        kind: 'text',
        of: 'error',
        name: trans.__('Error of cell %1', index + 1),
        id: `${address(panel, index)}/error`,
        text: error.traceback,
        detail: error.name
      };
}

/** Return the error among the outputs of a cell. */
export function errorOf(
  model: ICodeCellModel
): { readonly name: string; readonly traceback: string } | null {
  for (const output of model.outputs?.toJSON() ?? []) {
    if (output.output_type === 'error') {
      const lines = Array.isArray(output.traceback) ? output.traceback : [];
      return {
        name: String(output.ename),
        traceback: withoutAnsi(lines.join('\n'))
      };
    }
  }
  return null;
}

function selectionItem(
  panel: NotebookPanel,
  index: number
): IContextItem | null {
  const editor = panel.content.widgets[index]?.editor;
  if (!editor) {
    return null;
  }
  const { start, end } = editor.getSelection();
  const [from, to] = [start, end].map(each => editor.getOffsetAt(each));
  const selected = editor.model.sharedModel.getSource().slice(from, to);
  return selected.trim() === ''
    ? null
    : {
        kind: 'text',
        of: 'selection',
        name: trans.__('Selected text of cell %1', index + 1),
        id: `${address(panel, index)}/selection`,
        text: selected
      };
}

/** Address of a cell, from which an agent can tell how to edit it. */
function address(panel: NotebookPanel, index: number): string {
  const id = panel.content.widgets[index]?.model.id ?? '';
  return `${panel.context.localPath}#${id}`;
}

/** Return a search for what can be added to a prompt: of the current cell, variables and files. */
export function contextFinder(
  model: AgentModel,
  notebooks: INotebookTracker | null
): (query: string) => Promise<readonly IContextItem[]> {
  return async query => {
    const panel = panelOf(notebooks, model.events);
    const wanted = query.toLowerCase().replace(/-/g, ' ');
    const ofCell = (panel ? cellItems(panel) : []).filter(({ name }) =>
      name.toLowerCase().includes(wanted)
    );
    return [...ofCell, ...(await model.find(query))];
  };
}
