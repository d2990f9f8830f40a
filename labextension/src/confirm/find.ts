import type { ICard } from '../events/card.js';
import type { IActivity } from '../tokens.js';

/**
 * Find a card on which nobody has decided yet.
 *
 * @param events - Of a notebook.
 * @param wanted - Which one; without an event, the only one that waits.
 */
export function findWaiting(
  { waiting }: Pick<IActivity, 'waiting'>,
  wanted: { event?: unknown; generation?: unknown }
): ICard | undefined {
  const undecided = waiting.filter(
    ({ generation, confirmation }) =>
      !confirmation?.busy && generation === (wanted.generation ?? generation)
  );
  if (wanted.event === undefined) {
    return undecided.length === 1 ? undecided[0] : undefined;
  }
  return undecided.find(({ id }) => id === wanted.event);
}
