import { matches, type ICard } from '../events/card.js';
import type { IActivity } from '../tokens.js';

/** Find an undecided card; without an event, the only one. */
export function findWaiting(
  { waiting }: Pick<IActivity, 'waiting'>,
  args: { event?: unknown; generation?: unknown }
): ICard | undefined {
  const undecided = waiting.filter(
    card => !card.confirmation?.busy && matches(card, args)
  );
  return args.event !== undefined || undecided.length === 1
    ? undecided[0]
    : undefined;
}
