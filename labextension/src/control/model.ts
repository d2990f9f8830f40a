import type { Kernel } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import { RuntimeGoneError, reasonOf } from '../events/errors.js';
import type { IKernelEvents, IOhRuntime, RuntimeState } from '../tokens.js';

/** What a panel shows of the kernel of the notebook in front, asked while a person looks. */
export abstract class KernelModel implements IDisposable {
  /** @param runtime - Tells which notebook is in front. */
  constructor(runtime: IOhRuntime) {
    this._runtime = runtime;
    runtime.currentChanged.connect(this._onCurrentChanged, this);
  }

  /** Emitted whenever there is something else to show. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get events(): IKernelEvents | null {
    return this._events;
  }

  /** Why the kernel could not be asked; "" if it could. */
  get error(): string {
    return this._error;
  }

  /** Counts the answers. */
  get version(): number {
    return this._version;
  }

  /** Whether a person looks; without that nothing is asked. */
  get isShown(): boolean {
    return this._isShown;
  }
  set isShown(isShown: boolean) {
    this._isShown = isShown;
    if (this._events !== this._runtime.current) {
      this._onCurrentChanged(this._runtime, this._runtime.current);
    } else if (isShown) {
      this._look();
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** One request at a time: calls during a request ask once more after it. */
  async refresh(): Promise<void> {
    this._stale = true;
    this._asking ??= this._askWhileStale().finally(() => {
      this._asking = null;
    });
    await this._asking;
  }

  /** Ask the kernel for what is shown. */
  protected abstract ask(kernel: Kernel.IKernelConnection): Promise<void>;

  /** Another kernel is looked at, or none: what was known of the last one is not its. */
  protected abstract forget(): void;

  /** Other events are looked at from now on, no more those before. */
  protected follow(
    _before: IKernelEvents | null,
    _now: IKernelEvents | null
  ): void {
    return;
  }

  /** @throws RuntimeGoneError if there is none. */
  protected get kernel(): Kernel.IKernelConnection {
    const kernel = this._events?.sessionContext.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    return kernel;
  }

  protected emitChanged(): void {
    this._changed.emit();
  }

  private async _askWhileStale(): Promise<void> {
    while (this._stale && this._events?.state === 'ready') {
      this._stale = false;
      const asked = this._events;
      try {
        await this.ask(this.kernel);
        this._error = '';
      } catch (error) {
        this._error = reasonOf(error);
      }
      if (asked !== this._events) {
        // The answer is about another kernel than the one that is looked at by now.
        this.forget();
        this._error = '';
      }
      this._version += 1;
      this._changed.emit();
    }
  }

  private _look(): void {
    void this._events?.refresh();
    void this.refresh();
  }

  private _onCurrentChanged(_: unknown, now: IKernelEvents | null): void {
    const before = this._events;
    before?.changed.disconnect(this._onChanged, this);
    this.follow(before, now);
    this._events = now;
    this._state = now?.state;
    this._error = '';
    this.forget();
    now?.changed.connect(this._onChanged, this);
    if (this._isShown) {
      this._look();
    }
    this._changed.emit();
  }

  private _onChanged(): void {
    const before = this._state;
    const now = this._events?.state;
    if (before === now) {
      return;
    }
    this._state = now;
    if (before === 'ready' || now === 'ready') {
      this.forget();
    }
    if (now === 'ready' && this._isShown) {
      void this.refresh();
    }
    this._changed.emit();
  }

  private readonly _runtime: IOhRuntime;
  private readonly _changed = new Signal<this, void>(this);
  private _events: IKernelEvents | null = null;
  private _asking: Promise<void> | null = null;
  private _state: RuntimeState | undefined;
  private _error = '';
  private _version = 0;
  private _stale = false;
  private _isShown = false;
  private _isDisposed = false;
}
