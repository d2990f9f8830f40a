import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { reasonOf } from '../events/errors.js';
import { isCard, isPending } from '../events/card.js';
import { askOnControl, type IControlReply } from '../events/control.js';
import { isRecord, text, type IAction } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { queued } from './keys.js';

/** How long one request waits for a new picture. */
const WATCH_SECONDS = 20;
/** Opening the first page may start a browser. */
const FIRST_PAGE_TIMEOUT_MS = 90_000;

export interface IBrowserView {
  /** Number of the picture; -1 if no browser runs. */
  readonly number: number;
  readonly url: string;
  readonly session: string;
  readonly tabs: readonly { title: string; active: boolean }[];
  /** Size of the page in its pixels. */
  readonly width: number;
  readonly height: number;
  readonly scroll: string;
  readonly held: boolean;
  /** Why no browser can be used here, or "". */
  readonly refused: string;
}

/** Element that agents can act on, with its box in the viewport. */
export interface IMark {
  readonly bid: string;
  readonly bbox: readonly [number, number, number, number];
}

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
  marks: readonly IMark[] | null = null;
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
    this._show(null, null);
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
    if (await this._request({ op: 'hold_browser', hold })) {
      this._setHeld(hold);
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
      const reply = await this._request({ op: 'use_browser', actions });
      this.error = reply ? text(reply.fields, 'error') : this.error;
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
    const reply = await this._request({ op: 'browser_marks' });
    this._readingMarks = false;
    if (this.marks !== null && Array.isArray(reply?.fields.marks)) {
      this.marks = reply.fields.marks as IMark[];
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
      const reply =
        kernel && this.events?.state === 'ready'
          ? await this._request({
              op: 'watch_browser',
              known: this._known,
              wait: WATCH_SECONDS
            })
          : null;
      if (kernel === this._kernel) {
        this._apply(reply);
      }
      if (this.view === null || this.view.number < 0) {
        await woken;
      }
    }
    this._watching = false;
  }

  private _apply(reply: IControlReply | null): void {
    if (reply === null) {
      this._show(null, null);
      return;
    }
    const view = viewOf(reply.fields);
    const hasMoved =
      view.url !== this.view?.url || view.scroll !== this.view.scroll;
    const isNew = view.number !== this._known;
    this._known = view.number;
    this._show(view, isNew ? reply.body : undefined);
    if (hasMoved && this.marks !== null) {
      this.marks = [];
      void this._readMarks();
    }
  }

  /** Show a picture, remove it (null), or keep it (undefined). */
  private _show(
    view: IBrowserView | null,
    picture: DataView | null | undefined
  ): void {
    this.view = view;
    if (picture !== undefined) {
      const before = this.picture;
      this.picture =
        picture === null || picture.byteLength === 0
          ? ''
          : URL.createObjectURL(
              new Blob([picture as DataView<ArrayBuffer>], {
                type: 'image/jpeg'
              })
            );
      URL.revokeObjectURL(before);
    }
    this.changed.emit();
  }

  private async _request(
    content: Readonly<Record<string, unknown>>
  ): Promise<IControlReply | null> {
    const kernel = this._kernel;
    if (kernel === null) {
      return null;
    }
    try {
      return await askOnControl(kernel, content, FIRST_PAGE_TIMEOUT_MS);
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
    this._show(null, null);
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

function viewOf(fields: Readonly<Record<string, unknown>>): IBrowserView {
  const tabs = Array.isArray(fields.tabs) ? fields.tabs.filter(isRecord) : [];
  const numberOf = (name: string, otherwise: number) =>
    typeof fields[name] === 'number' ? fields[name] : otherwise;
  return {
    number: numberOf('number', -1),
    url: text(fields, 'url'),
    session: text(fields, 'session'),
    tabs: tabs.map(each => ({
      title: text(each, 'title'),
      active: each.active === true
    })),
    width: numberOf('width', 0),
    height: numberOf('height', 0),
    scroll: JSON.stringify(fields.scroll ?? null),
    held: fields.held === true,
    refused: text(fields, 'refused')
  };
}
