import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type {
  Decision,
  IActivity,
  IOpenCard,
  RuntimeState
} from '../tokens.js';
import type { EventsApi, IHistoryPage, IVerdict } from './api.js';
import { isCard, type ICard, type LogEntry } from './card.js';
import { Confirmations } from './confirmations.js';
import { parseDecision } from './decision.js';
import { NotLoadedError, RuntimeGoneError, reasonOf } from './errors.js';
import { FullCards } from './full.js';
import { EventLog } from './log.js';
import type { IProgress } from './progress.js';
import { WatchedEvents } from './watched.js';
import { isAction, parseMessage, text, type IEventMessage } from './wire.js';

const MESSAGE_TYPE = 'oh_jupyter_event';
const DECISION_TYPE = 'oh_jupyter_decision';

/** What is asked of the server. */
export type Api = Pick<
  EventsApi,
  | 'history'
  | 'event'
  | 'confirmations'
  | 'decide'
  | 'interrupt'
  | 'load'
  | 'look'
>;

/** What is watched of a session. */
export type IWatchedSession = Pick<
  ISessionContext,
  | 'name'
  | 'session'
  | 'iopubMessage'
  | 'kernelChanged'
  | 'statusChanged'
  | 'connectionStatusChanged'
  | 'propertyChanged'
>;

/** Keeps the log of one kernel: live messages, completed from history. */
export class KernelEvents<T extends IWatchedSession = IWatchedSession>
  extends WatchedEvents
  implements IActivity
{
  /**
   * @param session - Of the notebook or console, or one in a fleet.
   * @param api - Where to ask for history and for what waits.
   * @param limit - How many cards to keep.
   */
  constructor(session: T, api: Api, limit: number) {
    super();
    this._session = session;
    this._api = api;
    this._log = new EventLog(limit);
    this._full = new FullCards(({ generation }, events) => {
      this._log.shorten(generation, events);
      this._changed.emit();
    });
    this._confirmations = new Confirmations(api, this._log, {
      kernelId: () => this._kernelId,
      decide: async ({ generation, id }, verdict) => {
        const kernel = this._session.session?.kernel;
        if (!kernel) {
          throw new RuntimeGoneError();
        }
        await this._api.decide(kernel, generation, id, verdict);
      },
      onChanged: () => this._changed.emit(),
      onUnknown: () => {
        if (!this._watched) {
          void this.refresh();
        }
      }
    });
    session.iopubMessage.connect(this._onMessage, this);
    session.kernelChanged.connect(this._onKernelChanged, this);
    session.statusChanged.connect(this._onStatus, this);
    session.connectionStatusChanged.connect(this._onConnection, this);
    session.propertyChanged.connect(this._onRenamed, this);
  }

  get sessionContext(): T {
    return this._session;
  }

  get name(): string {
    return this._session.name;
  }

  get state(): RuntimeState {
    if (this._kernelId === null) {
      return 'no-kernel';
    }
    return this._isRestarting ? 'unknown' : this._state;
  }

  get error(): string {
    return this._error;
  }

  get workspaceDir(): string {
    return this._workspaceDir;
  }

  get entries(): readonly LogEntry[] {
    return this._log.entries;
  }

  get waiting(): readonly ICard[] {
    return this.entries
      .filter(isCard)
      .filter(({ confirmation }) => confirmation !== null);
  }

  readonly kernelOf = (): string => '';

  /** How many cards to keep. */
  set limit(limit: number) {
    this._log.limit = limit;
    this._changed.emit();
  }

  override dispose(): void {
    super.dispose();
    this._confirmations.dispose();
  }

  /** One request at a time: calls during a request ask once more after it. */
  async refresh(): Promise<void> {
    this._watched = true;
    this._stale = true;
    this._refreshing ??= this._catchUp().finally(() => {
      this._refreshing = null;
    });
    await this._refreshing;
  }

  async load(): Promise<void> {
    const kernelId = this._kernelId;
    if (kernelId === null) {
      throw new RuntimeGoneError();
    }
    await this._api.load(kernelId);
    await this.refresh();
  }

  async complete(card: ICard): Promise<void> {
    const kernelId = this._kernelId;
    const clipped = [card.action, card.observation]
      .filter(event => event !== null)
      .filter(event => event.clipped);
    if (clipped.length === 0) {
      return;
    }
    if (kernelId === null || card.generation !== this._log.current?.id) {
      throw new RuntimeGoneError();
    }
    const full = await Promise.all(
      clipped.map(({ id }) => this._api.event(kernelId, id))
    );
    // After a restart the same id belongs to another event.
    if (full.some((event, n) => event.timestamp !== clipped[n]?.timestamp)) {
      throw new RuntimeGoneError();
    }
    this._log.add(card.generation, kernelId, full);
    this._full.add(card, clipped, full);
    this._changed.emit();
  }

  open(card: ICard): IOpenCard {
    this._full.open(card);
    return {
      ready: this.complete(card),
      close: () => this._full.close(card)
    };
  }

  async decide(card: ICard, verdict: IVerdict): Promise<Decision> {
    const decision = await this._confirmations.decide(card, verdict);
    if (decision === 'gone') {
      void this.refresh();
    }
    return decision;
  }

  async look(
    { generation, id }: Pick<ICard, 'generation' | 'id'>,
    seen: IProgress | null
  ): Promise<IProgress> {
    const kernel = this._session.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    return this._api.look(kernel, generation, id, seen);
  }

  async stop({ action, generation }: ICard): Promise<void> {
    const kernel = this._session.session?.kernel;
    if (!kernel || generation !== this._log.current?.id) {
      throw new RuntimeGoneError();
    }
    if (action?.action === 'run_ipython') {
      await kernel.interrupt();
    } else {
      await this._api.interrupt(kernel, generation);
    }
  }

  /** Whether a life of the runtime was in this kernel. */
  has(generation: string): boolean {
    return this._log.has(generation);
  }

  /** Ask the server which Actions wait for a person, whether or not anybody looks. */
  async refreshWaiting(): Promise<void> {
    await this._confirmations.look();
  }

  private get _kernelId(): string | null {
    return this._session.session?.kernel?.id ?? null;
  }

  private async _catchUp(): Promise<void> {
    while (this._stale && !this.isDisposed) {
      this._stale = false;
      const kernelId = this._kernelId;
      const starts = this._starts;
      let state: RuntimeState = 'ready';
      try {
        if (kernelId !== null) {
          await this._readHistory(kernelId);
        }
      } catch (error) {
        state = error instanceof NotLoadedError ? 'not-loaded' : 'failed';
        this._error = reasonOf(error);
      }
      // Of a runtime that ended meanwhile nothing is known any more.
      if (kernelId !== null && starts === this._starts) {
        this._state = state;
        if (state === 'ready') {
          void this._confirmations.refresh();
        }
      }
      // An answer about a kernel that was replaced meanwhile says nothing.
      this._stale ||= kernelId !== this._kernelId;
    }
    this._changed.emit();
  }

  private async _readHistory(kernelId: string): Promise<void> {
    const known = this._log.current;
    const starts = this._starts;
    let startId: number | null =
      known?.kernelId === kernelId ? known.firstMissing : 0;
    while (startId !== null) {
      const page: IHistoryPage = await this._api.history(kernelId, startId);
      const isOther = kernelId !== this._kernelId || starts !== this._starts;
      if (this.isDisposed || isOther) {
        return;
      }
      this._workspaceDir = page.workspaceDir;
      const isNew = page.generation !== this._log.current?.id;
      this._log.add(page.generation, kernelId, page.events);
      this._changed.emit();
      // Ids are counted afresh in a new generation.
      startId = isNew && startId > 0 ? 0 : page.nextId;
    }
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    const type: string = message.header.msg_type;
    if (type === MESSAGE_TYPE) {
      const content = parseMessage(message.content);
      if (content !== null && this._kernelId !== null) {
        this._onEvent(content, this._kernelId);
      }
    } else if (type === DECISION_TYPE) {
      const decision = parseDecision(message.content);
      if (decision !== null) {
        this._confirmations.onDecided(decision);
      }
    } else if (type === 'execute_input' && this.state !== 'ready') {
      this._isRestarting = false;
      // Whoever names the extension in a cell is about to load it.
      const code = text(message.content as Record<string, unknown>, 'code');
      this._refreshWhenIdle ||= code.includes('oh_jupyter');
    }
  }

  private _onEvent(message: IEventMessage, kernelId: string): void {
    const isNew = message.generation !== this._log.current?.id;
    const follows = isNew
      ? message.event.id === 0
      : message.seq === this._lastSeq + 1;
    this._lastSeq = message.seq;
    this._log.add(message.generation, kernelId, [message.event]);
    // A failure is told until the history could be read after all.
    this._state = this._state === 'failed' ? 'failed' : 'ready';
    this._changed.emit();
    this._arrived.emit(message);
    if (isAction(message.event)) {
      this._confirmations.onAction(message.generation, message.event);
    }
    if (!follows) {
      this._refreshIfWatched();
    }
  }

  private _onKernelChanged(): void {
    this._isRestarting = false;
    this._log.end();
    this._state = 'unknown';
    this._changed.emit();
    this._refreshIfWatched();
    void this._confirmations.look();
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting') {
      this._log.end();
      this._state = 'unknown';
      this._starts += 1;
      this._isRestarting = true;
      this._refreshWhenIdle = true;
      this._changed.emit();
    } else if (status === 'dead') {
      this._log.end();
      this._changed.emit();
    } else if (
      status === 'idle' &&
      this._refreshWhenIdle &&
      !this._isRestarting
    ) {
      this._refreshWhenIdle = false;
      this._refreshIfWatched();
    }
  }

  private _onRenamed(): void {
    this._changed.emit();
  }

  private _onConnection(_: unknown, status: Kernel.ConnectionStatus): void {
    if (status === 'connected') {
      this._isRestarting = false;
      this._refreshIfWatched();
      void this._confirmations.look();
    }
  }

  private _refreshIfWatched(): void {
    if (this._watched) {
      void this.refresh();
    }
  }

  private readonly _session: T;
  private readonly _api: Api;
  private readonly _log: EventLog;
  private readonly _full: FullCards;
  private readonly _confirmations: Confirmations;
  private _state: RuntimeState = 'unknown';
  private _error = '';
  private _workspaceDir = '';
  private _lastSeq = -1;
  private _watched = false;
  /** Counts the restarts. */
  private _starts = 0;
  /** From a restart until JupyterLab connects to the new process. */
  private _isRestarting = false;
  private _stale = false;
  private _refreshing: Promise<void> | null = null;
  private _refreshWhenIdle = false;
}
