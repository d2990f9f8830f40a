import { Signal } from '@lumino/signaling';

import type { IEventMessage } from './wire.js';

/** Signals of a log, and whether a person sees it. */
export class WatchedEvents {
  get isShown(): boolean {
    return this._isShown;
  }
  set isShown(isShown: boolean) {
    if (isShown !== this._isShown) {
      this._isShown = isShown;
      this.changed.emit();
    }
  }

  dispose(): void {
    this.isDisposed = true;
    Signal.clearData(this);
  }

  readonly changed = new Signal<this, void>(this);
  readonly arrived = new Signal<this, IEventMessage>(this);
  protected isDisposed = false;
  private _isShown = false;
}
