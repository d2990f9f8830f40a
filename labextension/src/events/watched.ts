import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import type { IEventMessage } from './wire.js';

/** Who is told of the events of a kernel or a fleet, and whether a person sees them. */
export class WatchedEvents implements IDisposable {
  get isShown(): boolean {
    return this._isShown;
  }
  set isShown(isShown: boolean) {
    if (isShown !== this._isShown) {
      this._isShown = isShown;
      this._changed.emit();
    }
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get arrived(): ISignal<this, IEventMessage> {
    return this._arrived;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  protected readonly _changed = new Signal<this, void>(this);
  protected readonly _arrived = new Signal<this, IEventMessage>(this);
  private _isShown = false;
  private _isDisposed = false;
}
