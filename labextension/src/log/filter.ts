import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { kind, searchable, type Kind } from './summary.js';

/** Filter of cards. */
export interface IFilter {
  /** Words that a card must contain; "" for any card. */
  readonly words: string;
  /** Kind of card; null for all. */
  readonly kind: Kind | null;
}

/** Cards never change, so their text is computed once. */
const searched = new WeakMap<ICard, string>();

function contents(card: ICard): string {
  const text = searched.get(card) ?? searchable(card);
  searched.set(card, text);
  return text;
}

/** Return the matching entries, with fresh starts only between cards. */
export function filtered(
  entries: readonly LogEntry[],
  filter: IFilter
): readonly LogEntry[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && filter.kind === null) {
    return entries;
  }
  // Never hide what waits for the person.
  const isWanted = (card: ICard) =>
    card.confirmation !== null ||
    ((filter.kind === null || kind(card) === filter.kind) &&
      words.every(word => contents(card).includes(word)));
  return entries
    .filter(entry => !isCard(entry) || isWanted(entry))
    .filter((entry, index, matching) => {
      const next = matching[index + 1];
      return isCard(entry) || (index > 0 && next && isCard(next));
    });
}
