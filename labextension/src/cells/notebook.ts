import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { ICard } from '../events/card.js';
import type { IKernelEvents } from '../tokens.js';
import { codeCell, comesFrom, METADATA_KEY, origin } from './cell.js';

/** Return the notebook of events; undefined for a console. */
export function panelOf(
  notebooks: INotebookTracker | null,
  events: IKernelEvents | null
): NotebookPanel | undefined {
  return notebooks?.find(
    panel => panel.sessionContext === events?.sessionContext
  );
}

/** Return the index of a card's cell, or -1. */
export function findCell({ model }: NotebookPanel, card: ICard): number {
  const from = origin(card);
  return (model?.sharedModel.cells ?? []).findIndex(cell =>
    comesFrom(cell.getMetadata(METADATA_KEY), from)
  );
}

/** Append the cell of a full card, and return its index. */
export function appendCell(panel: NotebookPanel, card: ICard): number {
  const notebook = panel.model!.sharedModel;
  const end = notebook.cells.length;
  notebook.insertCell(end, codeCell(card));
  return end;
}

/** Scroll to a cell without changing the selection. */
export async function showCell(
  panel: NotebookPanel,
  index: number
): Promise<void> {
  // In a cell taller than the page, show the code rather than the end of the output.
  const scrolled = panel.content.scrollToItem(index, 'auto', 0, 'start');
  // A newer scroll cancels this one.
  await scrolled.catch(() => undefined);
}

/** Return whether the end of the notebook is visible. */
export function isEndInSight({ content }: NotebookPanel): boolean {
  const last = content.widgets.at(-1)?.node.getBoundingClientRect();
  const page = content.node.getBoundingClientRect();
  return (
    last === undefined ||
    // A cell out of view may be detached and have no height.
    (last.height > 0 && last.bottom > page.top && last.bottom <= page.bottom)
  );
}
