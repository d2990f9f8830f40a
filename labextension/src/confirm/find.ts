import type { ICard } from '../events/card.js';
import type { IActivity } from '../tokens.js';

/** Find an undecided card; without an event, the only one. */
export function findWaiting(
  { waiting }: Pick<IActivity, 'waiting'>,
  args: { event?: unknown; generation?: unknown }
): ICard | undefined {
  const undecided = waiting.filter(
    ({ generation, confirmation }) =>
      !confirmation?.busy && generation === (args.generation ?? generation)
  );
  if (args.event === undefined) {
    return undecided.length === 1 ? undecided[0] : undefined;
  }
  return undecided.find(({ id }) => id === args.event);
}
