import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { isCard, type ICard } from '../events/card.js';
import { RuntimeGoneError } from '../events/errors.js';
import type { IKernelEvents } from '../tokens.js';
import { isCell, origin } from './cell.js';
import { appendCell, findCell, isEndInSight, showCell } from './notebook.js';

/** Makes cells of a notebook out of what ran in its kernel. */
export class CellAdder {
  /** @param notebooks - The open notebooks. */
  constructor(notebooks: INotebookTracker) {
    this._notebooks = notebooks;
  }

  /** The notebook to which events belong; null for a console. */
  notebookOf(events: IKernelEvents | null): NotebookPanel | null {
    return (
      this._notebooks.find(
        panel => panel.sessionContext === events?.sessionContext
      ) ?? null
    );
  }

  /**
   * Add a card as the last cell and show it, or show the cell that it has become.
   *
   * @param events - The notebook's.
   * @param card - One of them.
   * @param always - Show it even if the person looks at something else.
   * @returns Whether a cell was added.
   * @throws What `IKernelEvents.complete` throws; then nothing was added.
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
    // Looked for again: it may have been added while the server was asked.
    const known = findCell(panel, card);
    const show = always || (known < 0 && isEndInSight(panel));
    const index = known < 0 ? appendCell(panel, inFull(events, card)) : known;
    if (show) {
      await showCell(panel, index);
    }
    return known < 0;
  }

  private readonly _notebooks: INotebookTracker;
}

/** Find the card of an Action; without one, the last that can become a cell. */
export function findCard(
  events: IKernelEvents,
  wanted: { event?: unknown; generation?: unknown }
): ICard | undefined {
  return events.entries
    .filter(isCard)
    .filter(isCell)
    .filter(card => {
      const { event, generation } = origin(card);
      return (
        event === (wanted.event ?? event) &&
        generation === (wanted.generation ?? generation)
      );
    })
    .at(-1);
}

/** Cards are replaced when more of them is known; half a cell is not added. */
function inFull(events: IKernelEvents, card: ICard): ICard {
  const newest = findCard(events, origin(card)) ?? card;
  if (newest.action?.clipped || newest.observation?.clipped) {
    throw new RuntimeGoneError();
  }
  return newest;
}
