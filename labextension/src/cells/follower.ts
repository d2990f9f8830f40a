import { isCard } from '../events/card.js';
import { isAction, type IEventMessage } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import type { CellAdder } from './adder.js';
import { isCell, origin } from './cell.js';

/** Adds the agent's cells to the current notebook as they end; history could restore deleted ones. */
export class CellFollower {
  constructor(
    runtime: IOhRuntime,
    private readonly _adder: CellAdder,
    private readonly _onFailure: (error: unknown) => void
  ) {
    runtime.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(runtime, runtime.current);
  }

  isEnabled = false;

  private _onCurrentChanged(_: IOhRuntime, events: IKernelEvents | null): void {
    this._events?.arrived.disconnect(this._onArrived, this);
    this._events = events;
    events?.arrived.connect(this._onArrived, this);
  }

  private _onArrived(
    events: IKernelEvents,
    { event, generation }: IEventMessage
  ): void {
    if (!this.isEnabled || isAction(event)) {
      return;
    }
    const card = events.entries
      .filter(isCard)
      .find(
        each =>
          each.generation === generation && each.observation?.id === event.id
      );
    if (card && isCell(card) && origin(card).source === 'agent') {
      // One at a time, so that short cells do not overtake those that are fetched.
      this._last = this._last
        .then(() => this._adder.add(events, card, false))
        .catch(this._onFailure);
    }
  }

  private _events: IKernelEvents | null = null;
  private _last: Promise<unknown> = Promise.resolve();
}
