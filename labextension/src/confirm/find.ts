import type { ICard } from '../events/card.js';
import type { IKernelEvents } from '../tokens.js';

/**
 * Find a card on which nobody has decided yet.
 *
 * @param events - Of a notebook.
 * @param wanted - Which one; without an event, the one that waits longest.
 */
export function findWaiting(
  { waiting }: Pick<IKernelEvents, 'waiting'>,
  wanted: { event?: unknown; generation?: unknown }
): ICard | undefined {
  return waiting.find(
    ({ id, generation, confirmation }) =>
      !confirmation?.busy &&
      id === (wanted.event ?? id) &&
      generation === (wanted.generation ?? generation)
  );
}
