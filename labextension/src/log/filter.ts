import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { kind, searchable, type Kind } from './summary.js';

/** What a person wants to see. */
export interface IFilter {
  /** Words that must all be in a card; "" for any card. */
  readonly words: string;
  /** The kind of card; null for all. */
  readonly kind: Kind | null;
}

/** Cards never change, so what they say is worked out once. */
const searched = new WeakMap<ICard, string>();

function contents(card: ICard): string {
  let known = searched.get(card);
  if (known === undefined) {
    known = searchable(card);
    searched.set(card, known);
  }
  return known;
}

/** The entries that a person wants to see; fresh starts only between cards. */
export function filtered(
  entries: readonly LogEntry[],
  filter: IFilter
): readonly LogEntry[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && filter.kind === null) {
    return entries;
  }
  // What waits for the person is not to be overlooked.
  const isWanted = (card: ICard) =>
    card.confirmation !== null ||
    ((filter.kind === null || kind(card) === filter.kind) &&
      words.every(word => contents(card).includes(word)));
  return entries
    .filter(entry => !isCard(entry) || isWanted(entry))
    .filter((entry, index, kept) => {
      const next = kept[index + 1];
      return isCard(entry) || (index > 0 && next && isCard(next));
    });
}
