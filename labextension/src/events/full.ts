import type { ICard } from './card.js';
import type { WireEvent } from './wire.js';

/** UTF-16 units of all events in full length together, unless more of them are in sight. */
const MAX_CHARS = 16_000_000;

interface IFullCard {
  readonly card: ICard;
  /** Its events as they were before. */
  readonly shortened: readonly WireEvent[];
  readonly chars: number;
}

/** The cards that were fetched in full length; too many are shortened again. */
export class FullCards {
  /**
   * @param shorten - Puts the shortened events of a card in their place again.
   * @param maxChars - How much to keep of what is not in sight.
   */
  constructor(
    shorten: (card: ICard, events: readonly WireEvent[]) => void,
    maxChars = MAX_CHARS
  ) {
    this._shorten = shorten;
    this._maxChars = maxChars;
  }

  /** Note what a card was, and what it is in full length. */
  add(
    card: ICard,
    shortened: readonly WireEvent[],
    full: readonly WireEvent[]
  ): void {
    const before = this._cards.get(card.key);
    this._cards.delete(card.key);
    this._cards.set(card.key, {
      card,
      shortened: [...(before?.shortened ?? []), ...shortened],
      chars: (before?.chars ?? 0) + JSON.stringify(full).length
    });
    this._evict();
  }

  /** A card is in sight until it is closed. */
  open({ key }: ICard): void {
    this._opened.set(key, (this._opened.get(key) ?? 0) + 1);
  }

  close({ key }: ICard): void {
    const count = (this._opened.get(key) ?? 0) - 1;
    this._opened.set(key, count);
    if (count <= 0) {
      this._opened.delete(key);
      this._evict();
    }
  }

  /** The oldest first; never the last one, which somebody has just asked for. */
  private _evict(): void {
    const cards = [...this._cards.values()];
    let excess =
      cards.reduce((sum, { chars }) => sum + chars, 0) - this._maxChars;
    for (const { card, shortened, chars } of cards.slice(0, -1)) {
      if (excess > 0 && !this._opened.has(card.key)) {
        excess -= chars;
        this._cards.delete(card.key);
        this._shorten(card, shortened);
      }
    }
  }

  private readonly _shorten: (
    card: ICard,
    events: readonly WireEvent[]
  ) => void;
  private readonly _maxChars: number;
  private readonly _cards = new Map<string, IFullCard>();
  private readonly _opened = new Map<string, number>();
}
