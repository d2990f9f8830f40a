import type { EventRef, IConfirmation, LogEntry } from './card.js';
import { Generation } from './generation.js';
import type { WireEvent } from './wire.js';

/** Events in the kernels of one notebook, oldest first, identified by generation and id. */
export class EventLog {
  constructor(private _limit = 1000) {}

  get limit(): number {
    return this._limit;
  }
  set limit(limit: number) {
    this._limit = limit;
    this._trim();
    this._entries = null;
  }

  /** Current or last generation. */
  get current(): Generation | null {
    return this._generations.at(-1) ?? null;
  }

  has(generation: string): boolean {
    return this._generations.some(({ id }) => id === generation);
  }

  /** Cards, with a fresh start between generations. */
  get entries(): readonly LogEntry[] {
    this._entries ??= this._generations.flatMap<LogEntry>(
      (generation, index) => {
        const before = this._generations[index - 1];
        return before && generation.cards.length > 0
          ? [
              {
                key: `fresh/${generation.id}`,
                sameKernel: before.kernelId === generation.kernelId
              },
              ...generation.cards
            ]
          : generation.cards;
      }
    );
    return this._entries;
  }

  /** Merge events of one generation, in any order; a new generation means that the runtime restarted. */
  add(
    generation: string,
    kernelId: string,
    events: readonly WireEvent[]
  ): void {
    let target = this._generations.find(({ id }) => id === generation);
    if (!target) {
      this.end();
      target = new Generation(generation, kernelId);
      this._generations.push(target);
    }
    for (const event of events) {
      target.add(event);
    }
    this._trim();
    this._entries = null;
  }

  /** Replace full events by their clipped versions. */
  shorten(generation: string, events: readonly WireEvent[]): void {
    const target = this._generations.find(({ id }) => id === generation);
    events.forEach(event => target?.shorten(event));
    this._entries = null;
  }

  /** Set the confirmation of a card; null if it does not wait. */
  confirm(
    { generation, id }: EventRef,
    confirmation: IConfirmation | null
  ): void {
    this._generations
      .find(each => each.id === generation)
      ?.confirm(id, confirmation);
    this._entries = null;
  }

  /** Mark what is pending as lost, because the runtime ended. */
  end(): void {
    this.current?.end();
    this._entries = null;
  }

  private _trim(): void {
    const total = this._generations.reduce(
      (n, { cards }) => n + cards.length,
      0
    );
    let excess = total - this._limit;
    for (const generation of this._generations) {
      if (excess <= 0) {
        break;
      }
      const count = Math.min(excess, generation.cards.length);
      generation.dropFirst(count);
      excess -= count;
    }
    this._generations = this._generations.filter(
      generation => generation.cards.length > 0 || generation === this.current
    );
  }

  private _generations: Generation[] = [];
  private _entries: readonly LogEntry[] | null = null;
}
