import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { RuntimeGoneError, reasonOf } from '../events/errors.js';
import { SerialTask } from '../events/serial.js';
import {
  isAction,
  type IEventMessage,
  type IObservation
} from '../events/wire.js';
import type { IKernelEvents, IOhRuntime, RuntimeState } from '../tokens.js';

/** Data of the current notebook's kernel, requested while a panel is visible. */
export abstract class KernelModel {
  constructor(private readonly _runtime: IOhRuntime) {
    this._runtime.currentChanged.connect(this._onCurrentChanged, this);
  }

  readonly changed = new Signal<this, void>(this);
  events: IKernelEvents | null = null;
  /** Error of the last request; "" if it succeeded. */
  error = '';
  version = 0;

  /** Whether the panel is visible; otherwise nothing is requested. */
  get isShown(): boolean {
    return this._isShown;
  }
  set isShown(isShown: boolean) {
    this._isShown = isShown;
    if (this.events !== this._runtime.current) {
      this._onCurrentChanged(this._runtime, this._runtime.current);
    } else if (isShown) {
      this._look();
    }
  }

  dispose(): void {
    Signal.clearData(this);
  }

  async refresh(): Promise<void> {
    await this._request.run();
  }

  protected abstract ask(kernel: Kernel.IKernelConnection): Promise<void>;

  /** Drop the data of the previous kernel. */
  protected abstract forget(): void;

  /** Handle an Observation that arrives while the panel is visible. */
  protected onObservation(_observation: IObservation): void {
    return;
  }

  /** Handle a message that the kernel broadcasts. */
  protected onMessage(_type: string, _content: unknown): void {
    return;
  }

  /** @throws RuntimeGoneError if there is no kernel. */
  protected get kernel(): Kernel.IKernelConnection {
    const kernel = this.events?.sessionContext.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    return kernel;
  }

  private async _askIfReady(): Promise<void> {
    const events = this.events;
    if (events?.state !== 'ready') {
      return;
    }
    try {
      await this.ask(this.kernel);
      this.error = '';
    } catch (error) {
      this.error = reasonOf(error);
    }
    if (events !== this.events) {
      // The response is about a previous kernel.
      this.forget();
      this.error = '';
    }
    this.version += 1;
    this.changed.emit();
  }

  private _look(): void {
    void this.events?.refresh();
    void this.refresh();
  }

  private _onCurrentChanged(_: unknown, now: IKernelEvents | null): void {
    const before = this.events;
    before?.changed.disconnect(this._onChanged, this);
    before?.arrived.disconnect(this._onArrived, this);
    before?.sessionContext.iopubMessage.disconnect(this._onIOPub, this);
    this.events = now;
    this._state = now?.state;
    this._name = now?.name;
    this.error = '';
    this.forget();
    now?.changed.connect(this._onChanged, this);
    now?.arrived.connect(this._onArrived, this);
    now?.sessionContext.iopubMessage.connect(this._onIOPub, this);
    if (this._isShown) {
      this._look();
    }
    this.changed.emit();
  }

  private _onChanged(): void {
    const before = this._state;
    const now = this.events?.state;
    const isRenamed = this.events?.name !== this._name;
    this._name = this.events?.name;
    if (before === now) {
      if (isRenamed) {
        this.changed.emit();
      }
      return;
    }
    this._state = now;
    if (before === 'ready' || now === 'ready') {
      this.forget();
    }
    if (now === 'ready' && this._isShown) {
      void this.refresh();
    }
    this.changed.emit();
  }

  private _onArrived(_: unknown, { event }: IEventMessage): void {
    if (this._isShown && !isAction(event)) {
      this.onObservation(event);
    }
  }

  private _onIOPub(_: unknown, message: KernelMessage.IMessage): void {
    this.onMessage(message.header.msg_type, message.content);
  }

  private readonly _request = new SerialTask(() => this._askIfReady());
  private _state: RuntimeState | undefined;
  private _name: string | undefined;
  private _isShown = false;
}
