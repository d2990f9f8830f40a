import { isCard } from '../events/card.js';
import { isAction, type IEventMessage } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import type { CellAdder } from './adder.js';
import { isCell, origin } from './cell.js';

/**
 * Adds the agent's cells to the notebook in front as they end.
 *
 * Only what comes live is added: history would bring back what the person deleted.
 */
export class CellFollower {
  /**
   * @param runtime - Tells which notebook is in front.
   * @param adder - Adds the cells.
   * @param onFailure - Told why a cell could not be added.
   */
  constructor(
    runtime: IOhRuntime,
    adder: CellAdder,
    onFailure: (error: unknown) => void
  ) {
    this._adder = adder;
    this._onFailure = onFailure;
    runtime.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(runtime, runtime.current);
  }

  /** Whether cells are added. */
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
      // One after the other: short cells must not overtake those that are fetched.
      this._last = this._last
        .then(() => this._adder.add(events, card, false))
        .catch(this._onFailure);
    }
  }

  private readonly _adder: CellAdder;
  private readonly _onFailure: (error: unknown) => void;
  private _events: IKernelEvents | null = null;
  private _last: Promise<unknown> = Promise.resolve();
}
