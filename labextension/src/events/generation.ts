import {
  isPending,
  preferred,
  type ICard,
  type IConfirmation
} from './card.js';
import {
  isAction,
  type IAction,
  type IObservation,
  type WireEvent
} from './wire.js';

/** Cards of one generation of a runtime, sorted by id. */
export class Generation {
  constructor(
    readonly id: string,
    readonly kernelId: string
  ) {}

  get cards(): readonly ICard[] {
    return this._cards;
  }

  /** Smallest id not yet seen: start of the missing history. */
  get firstMissing(): number {
    return this._firstMissing;
  }

  /** Merge one event; events may arrive in any order and repeatedly. */
  add(event: WireEvent): void {
    this._see(event.id);
    if (isAction(event)) {
      this._addAction(event);
    } else {
      this._addObservation(event);
    }
  }

  /** Mark pending cards as lost, because the runtime ended. */
  end(): void {
    this._cards = this._cards.map(card =>
      (isPending(card) || card.confirmation) && !card.lost
        ? { ...card, confirmation: null, lost: true }
        : card
    );
  }

  find(id: number): ICard | undefined {
    const card = this._cards[this._position(id)];
    return card?.id === id ? card : undefined;
  }

  /** Replace a full event by its clipped version. */
  shorten(event: WireEvent): void {
    const isAsked = isAction(event);
    const card = this.find(isAsked ? event.id : (event.cause ?? event.id));
    const known = isAsked ? card?.action : card?.observation;
    if (card && known?.id === event.id) {
      this._put({ ...card, [isAsked ? 'action' : 'observation']: event });
    }
  }

  /** Set the confirmation of an Action that has neither an Observation nor is lost. */
  confirm(id: number, confirmation: IConfirmation | null): void {
    const card = this.find(id);
    if (card?.action && card.observation === null && !card.lost) {
      this._put({ ...card, confirmation });
    }
  }

  dropFirst(count: number): void {
    const dropped = this._cards.splice(0, count).at(-1);
    if (dropped) {
      this._droppedUpTo = dropped.id;
    }
  }

  private _see(id: number): void {
    if (id < this._firstMissing) {
      return;
    }
    this._ahead.add(id);
    while (this._ahead.delete(this._firstMissing)) {
      this._firstMissing += 1;
    }
  }

  private _addAction(action: IAction): void {
    if (action.id <= this._droppedUpTo) {
      return;
    }
    const known = this.find(action.id);
    const early = this._cards.find(
      card => card.action === null && card.observation?.cause === action.id
    );
    if (early) {
      this._cards.splice(this._position(early.id), 1);
    }
    this._put({
      ...(known ?? this._card(action.id)),
      action: preferred(known?.action ?? null, action),
      observation: known?.observation ?? early?.observation ?? null
    });
  }

  private _addObservation(observation: IObservation): void {
    const cause = observation.cause;
    if ((cause ?? observation.id) <= this._droppedUpTo) {
      return;
    }
    const asked = cause === null ? undefined : this.find(cause);
    if (!asked?.action) {
      const known = this.find(observation.id)?.observation ?? null;
      this._put({
        ...this._card(observation.id),
        observation: preferred(known, observation)
      });
    } else if ((asked.observation?.id ?? -1) <= observation.id) {
      // A confirmed Action gets two Observations; the last one counts.
      this._put({
        ...asked,
        observation: preferred(asked.observation, observation),
        confirmation: null,
        lost: false
      });
    }
  }

  private _card(id: number): ICard {
    return {
      key: `${this.id}/${id}`,
      generation: this.id,
      id,
      action: null,
      observation: null,
      confirmation: null,
      lost: false
    };
  }

  /** Binary search for the position of an id. */
  private _position(id: number): number {
    let low = 0;
    let high = this._cards.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this._cards[middle]!.id < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private _put(card: ICard): void {
    const position = this._position(card.id);
    const replaced = this._cards[position]?.id === card.id ? 1 : 0;
    this._cards.splice(position, replaced, card);
  }

  private _cards: ICard[] = [];
  private _ahead = new Set<number>();
  private _firstMissing = 0;
  private _droppedUpTo = -1;
}
