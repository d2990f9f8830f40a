import type { ICard } from './card.js';
import type { WireEvent } from './wire.js';

/** UTF-16 units of all full events together, without the open cards. */
const MAX_CHARS = 16_000_000;

interface IFullCard {
  readonly card: ICard;
  /** Its events before they were completed. */
  readonly shortened: readonly WireEvent[];
  readonly chars: number;
}

/** Cards fetched in full; the oldest closed ones are clipped again. */
export class FullCards {
  constructor(
    private readonly _shorten: (
      card: ICard,
      events: readonly WireEvent[]
    ) => void,
    private readonly _maxChars = MAX_CHARS
  ) {}

  /** Remember a card's clipped and full events. */
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

  /** Keep a card in full until it is closed. */
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

  /** Clip the oldest cards, but never the last one, which was just requested. */
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

  private readonly _cards = new Map<string, IFullCard>();
  private readonly _opened = new Map<string, number>();
}
