import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { isCard, matches, type ICard } from '../events/card.js';
import { RuntimeGoneError } from '../events/errors.js';
import type { IKernelEvents } from '../tokens.js';
import { isCell, origin } from './cell.js';
import {
  appendCell,
  findCell,
  isEndInSight,
  panelOf,
  showCell
} from './notebook.js';

/** Adds code that ran in a kernel to its notebook. */
export class CellAdder {
  constructor(private readonly _notebooks: INotebookTracker) {}

  /** Return the notebook of events; null for a console. */
  notebookOf(events: IKernelEvents | null): NotebookPanel | null {
    return panelOf(this._notebooks, events) ?? null;
  }

  /**
   * Add a card as the last cell and show it, or show its existing cell.
   * @param always - Show the cell even if the notebook's end is not visible.
   * @returns Whether a cell was added.
   */
  async add(
    events: IKernelEvents,
    card: ICard,
    always: boolean
  ): Promise<boolean> {
    const panel = this.notebookOf(events);
    if (!panel) {
      return false;
    }
    await panel.context.ready;
    if (findCell(panel, card) < 0) {
      await events.complete(card);
    }
    if (panel.isDisposed) {
      return false;
    }
    // It may have been added during the request.
    const known = findCell(panel, card);
    const show = always || (known < 0 && isEndInSight(panel));
    const index = known < 0 ? appendCell(panel, fullCard(events, card)) : known;
    if (show) {
      await showCell(panel, index);
    }
    return known < 0;
  }
}

/** Find the card of an Action; by default, the last that can become a cell. */
export function findCard(
  events: IKernelEvents,
  args: { event?: unknown; generation?: unknown }
): ICard | undefined {
  return events.entries
    .filter(isCard)
    .filter(isCell)
    .filter(card => matches({ ...card, id: origin(card).event }, args))
    .at(-1);
}

/** Return the latest version of a card, and refuse a clipped one. */
function fullCard(events: IKernelEvents, card: ICard): ICard {
  const newest = findCard(events, origin(card)) ?? card;
  if (newest.action?.clipped || newest.observation?.clipped) {
    throw new RuntimeGoneError();
  }
  return newest;
}
