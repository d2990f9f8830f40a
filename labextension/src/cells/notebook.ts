import type { NotebookPanel } from '@jupyterlab/notebook';

import type { ICard } from '../events/card.js';
import { codeCell, comesFrom, METADATA_KEY, origin } from './cell.js';

/** Where the cell of a card is in a notebook; -1 if it is not there. */
export function findCell({ model }: NotebookPanel, card: ICard): number {
  const from = origin(card);
  return (model?.sharedModel.cells ?? []).findIndex(cell =>
    comesFrom(cell.getMetadata(METADATA_KEY), from)
  );
}

/**
 * Append the cell of a card, so that it can be undone.
 *
 * @param panel - A notebook that does not have it.
 * @param card - In full length.
 * @returns Where it is now.
 */
export function appendCell(panel: NotebookPanel, card: ICard): number {
  const notebook = panel.model!.sharedModel;
  const end = notebook.cells.length;
  notebook.insertCell(end, codeCell(card));
  return end;
}

/** Scroll to a cell; what the person has selected stays selected. */
export async function showCell(
  panel: NotebookPanel,
  index: number
): Promise<void> {
  // Of a cell higher than the page, the code rather than the end of the output.
  const scrolled = panel.content.scrollToItem(index, 'auto', 0, 'start');
  // It is refused where another scroll takes its place: then that one counts.
  await scrolled.catch(() => undefined);
}

/** Whether the person sees where the notebook ends, so that more may come there. */
export function isEndInSight({ content }: NotebookPanel): boolean {
  const last = content.widgets.at(-1)?.node.getBoundingClientRect();
  const page = content.node.getBoundingClientRect();
  return (
    last === undefined ||
    // A cell out of sight may be taken off the page, and has no height then.
    (last.height > 0 && last.bottom > page.top && last.bottom <= page.bottom)
  );
}
