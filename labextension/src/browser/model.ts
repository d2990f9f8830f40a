import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type {
  IBrowserMark,
  IBrowserView,
  IReplies,
  OperationRequest
} from '../control/operations.js';
import { askKernel, type ControlRequest } from '../control/request.js';
import { reasonOf } from '../events/errors.js';
import { isCard, isPending } from '../events/card.js';
import type { IAction } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { queued } from './keys.js';

/** How long one request waits for a new picture. */
const WATCH_SECONDS = 20;
/** Opening the first page may start a browser. */
const FIRST_PAGE_TIMEOUT_MS = 90_000;

/** Browser of the current notebook, watched while it is visible. */
export class BrowserModel {
  constructor(private readonly _runtime: IOhRuntime) {
    this._runtime.currentChanged.connect(this._onCurrentChanged, this);
    this._onCurrentChanged(this._runtime, this._runtime.current);
  }

  readonly changed = new Signal<this, void>(this);
  events: IKernelEvents | null = null;
  view: IBrowserView | null = null;
  /** URL of the picture, or "". */
  picture = '';
  marks: readonly IBrowserMark[] | null = null;
  error = '';

  /** Whether a person's action is running. */
  get isBusy(): boolean {
    return this._sending;
  }

  /** Number of agents' actions that wait until the browser is handed back. */
  get waiting(): number {
    const entries = this.view?.held ? (this.events?.entries ?? []) : [];
    return entries
      .filter(isCard)
      .filter(card => isPending(card) && isAgents(card.action)).length;
  }

  set isWatched(isWatched: boolean) {
    if (isWatched !== this._isWatched) {
      this._isWatched = isWatched;
      this._wake();
      if (isWatched) {
        void this.events?.refresh();
        void this._watch();
      }
    }
  }

  dispose(): void {
    this.isWatched = false;
    this._runtime.currentChanged.disconnect(this._onCurrentChanged, this);
    this._follow(null);
    this._show(null, '');
    Signal.clearData(this);
  }

  /** Queue a call of the action language; this takes the browser over. */
  act(call: string): void {
    this._queue = queued(this._queue, call);
    if (!this._sending) {
      this._sent = this._send();
    }
  }

  /** Take the browser over from agents, or hand it back after the queued calls. */
  async hold(hold: boolean): Promise<void> {
    if (!hold) {
      // A call that is sent later would take the browser over again.
      await this._sent;
    }
    const held = await this._request({ op: 'hold_browser', hold });
    if (held !== null) {
      this._setHeld(held);
    }
  }

  /** Show or hide the marks of elements. */
  async showMarks(show: boolean): Promise<void> {
    this.marks = show ? [] : null;
    this.changed.emit();
    await this._readMarks();
  }

  private async _send(): Promise<void> {
    this._sending = true;
    this.error = '';
    this.changed.emit();
    while (this._queue.length > 0) {
      const actions = this._queue.join('\n');
      this._queue = [];
      const error = await this._request({ op: 'use_browser', actions });
      this.error = error ?? this.error;
      this._setHeld(true);
      this._wake();
    }
    this._sending = false;
    this.changed.emit();
    void this._readMarks();
  }

  private _setHeld(held: boolean): void {
    this.view = this.view && { ...this.view, held };
    this.changed.emit();
  }

  private async _readMarks(): Promise<void> {
    const number = this.view?.number ?? -1;
    if (this.marks === null || number < 0 || this._readingMarks) {
      return;
    }
    this._readingMarks = true;
    const marks = await this._request({ op: 'browser_marks' });
    this._readingMarks = false;
    if (this.marks !== null && marks !== null) {
      this.marks = marks;
      this.changed.emit();
    }
  }

  private async _watch(): Promise<void> {
    if (this._watching) {
      return;
    }
    this._watching = true;
    while (this._isWatched) {
      const woken = new Promise<void>(resolve => (this._wake = resolve));
      const kernel = this._kernel;
      const view =
        kernel && this.events?.state === 'ready'
          ? await this._request({
              op: 'watch_browser',
              known: this._known,
              wait: WATCH_SECONDS
            })
          : null;
      if (kernel === this._kernel) {
        this._apply(view);
      }
      if (this.view === null || this.view.number < 0) {
        await woken;
      }
    }
    this._watching = false;
  }

  private _apply(view: IBrowserView | null): void {
    if (view === null) {
      this._show(null, '');
      return;
    }
    const hasMoved =
      view.url !== this.view?.url ||
      String(view.scroll) !== String(this.view.scroll);
    const isNew = view.number !== this._known;
    this._known = view.number;
    this._show(view, isNew ? view.picture : undefined);
    if (hasMoved && this.marks !== null) {
      this.marks = [];
      void this._readMarks();
    }
  }

  /** Show a picture, remove it (""), or keep it (undefined). */
  private _show(view: IBrowserView | null, picture: string | undefined): void {
    this.view = view;
    if (picture !== undefined) {
      this.picture = picture && `data:image/jpeg;base64,${picture}`;
    }
    this.changed.emit();
  }

  private async _request<Op extends OperationRequest['op']>(
    request: ControlRequest<Op>
  ): Promise<IReplies[Op] | null> {
    const kernel = this._kernel;
    if (kernel === null) {
      return null;
    }
    try {
      return await askKernel(kernel, request, FIRST_PAGE_TIMEOUT_MS);
    } catch (error) {
      this.error = reasonOf(error);
      return null;
    }
  }

  private get _kernel(): Kernel.IKernelConnection | null {
    return this.events?.sessionContext.session?.kernel ?? null;
  }

  private _onCurrentChanged(_: IOhRuntime, events: IKernelEvents | null): void {
    this._follow(events);
    this._known = -1;
    this.error = '';
    this._show(null, '');
    if (this._isWatched) {
      void events?.refresh();
    }
    this._wake();
  }

  private _follow(events: IKernelEvents | null): void {
    this.events?.changed.disconnect(this._onEvent, this);
    this.events = events;
    events?.changed.connect(this._onEvent, this);
  }

  /** A browser may have started or changed its page. */
  private _onEvent(): void {
    this._wake();
    void this._readMarks();
  }

  private _known = -1;
  private _queue: string[] = [];
  private _sending = false;
  private _sent: Promise<void> = Promise.resolve();
  private _readingMarks = false;
  private _isWatched = false;
  private _watching = false;
  private _wake: () => void = () => undefined;
}

function isAgents(action: IAction | null): boolean {
  return action?.source === 'agent' && action.action.startsWith('browse');
}
