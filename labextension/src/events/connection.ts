import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type { IProgress } from '../control/operations.js';
import type {
  Decision,
  IActivity,
  IOpenCard,
  RuntimeState
} from '../tokens.js';
import type { EventsApi, IHistoryPage, IVerdict } from './api.js';
import { isCard, type EventRef, type ICard, type LogEntry } from './card.js';
import { Confirmations } from './confirmations.js';
import { parseDecision } from './decision.js';
import { NotLoadedError, RuntimeGoneError, reasonOf } from './errors.js';
import { FullCards } from './full.js';
import { EventLog } from './log.js';
import { SerialTask } from './serial.js';
import { WatchedEvents } from './watched.js';
import { isAction, parseMessage, text, type IEventMessage } from './wire.js';

const MESSAGE_TYPE = 'oh_jupyter_event';
const DECISION_TYPE = 'oh_jupyter_decision';

/** Public members of the server's API. */
export type Api = Pick<EventsApi, keyof EventsApi>;

/** Members of a session that are used here. */
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

/** Log of one kernel: live messages, completed from history. */
export class KernelEvents<T extends IWatchedSession = IWatchedSession>
  extends WatchedEvents
  implements IActivity
{
  constructor(
    private readonly _session: T,
    private readonly _api: Api,
    limit: number
  ) {
    super();
    this._log = new EventLog(limit);
    this._full = new FullCards(({ generation }, events) => {
      this._log.shorten(generation, events);
      this.changed.emit();
    });
    this._confirmations = new Confirmations(this._api, this._log, {
      kernelId: () => this._kernelId,
      decide: async (ref, verdict) =>
        this._api.decide(this._kernel, ref, verdict),
      onChanged: () => this.changed.emit(),
      onUnknown: () => {
        if (!this._watched) {
          void this.refresh();
        }
      }
    });
    this._session.iopubMessage.connect(this._onMessage, this);
    this._session.kernelChanged.connect(this._onKernelChanged, this);
    this._session.statusChanged.connect(this._onStatus, this);
    this._session.connectionStatusChanged.connect(this._onConnection, this);
    this._session.propertyChanged.connect(() => this.changed.emit());
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
    this.changed.emit();
  }

  override dispose(): void {
    super.dispose();
    this._confirmations.dispose();
  }

  async refresh(): Promise<void> {
    this._watched = true;
    await this._history.run();
  }

  async load(): Promise<void> {
    await this._api.load(this._kernel.id);
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
    this.changed.emit();
  }

  open(card: ICard): IOpenCard {
    this._full.open(card);
    return { ready: this.complete(card), close: () => this._full.close(card) };
  }

  async decide(card: ICard, verdict: IVerdict): Promise<Decision> {
    const decision = await this._confirmations.decide(card, verdict);
    if (decision === 'gone') {
      void this.refresh();
    }
    return decision;
  }

  async look(ref: EventRef, seen: IProgress | null): Promise<IProgress> {
    return this._api.look(this._kernel, ref, seen);
  }

  async stop({ action, generation }: ICard): Promise<void> {
    const kernel = this._kernel;
    if (generation !== this._log.current?.id) {
      throw new RuntimeGoneError();
    }
    if (action?.action === 'run_ipython') {
      await kernel.interrupt();
    } else {
      await this._api.interrupt(kernel, generation);
    }
  }

  /** Return whether a generation ran in this kernel. */
  has(generation: string): boolean {
    return this._log.has(generation);
  }

  /** Fetch the Actions that wait for a person, even if the log is not shown. */
  async refreshWaiting(): Promise<void> {
    await this._confirmations.look();
  }

  private get _kernelId(): string | null {
    return this._session.session?.kernel?.id ?? null;
  }

  /** @throws RuntimeGoneError if there is no kernel. */
  private get _kernel(): Kernel.IKernelConnection {
    const kernel = this._session.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    return kernel;
  }

  private async _catchUp(): Promise<void> {
    if (!this.isDisposed) {
      const kernelId = this._kernelId;
      const restarts = this._restarts;
      let state: RuntimeState = 'ready';
      try {
        if (kernelId !== null) {
          await this._readHistory(kernelId);
        }
      } catch (error) {
        state = error instanceof NotLoadedError ? 'not-loaded' : 'failed';
        this._error = reasonOf(error);
      }
      // After a restart, the response is about the previous runtime.
      if (kernelId !== null && restarts === this._restarts) {
        this._state = state;
        if (state === 'ready') {
          void this._confirmations.refresh();
        }
      }
      // Repeat the request if the kernel was replaced meanwhile.
      if (kernelId !== this._kernelId) {
        void this._history.run();
      }
    }
    this.changed.emit();
  }

  private async _readHistory(kernelId: string): Promise<void> {
    const known = this._log.current;
    const restarts = this._restarts;
    let startId: number | null =
      known?.kernelId === kernelId ? known.firstMissing : 0;
    while (startId !== null) {
      const page: IHistoryPage = await this._api.history(kernelId, startId);
      const isOther =
        kernelId !== this._kernelId || restarts !== this._restarts;
      if (this.isDisposed || isOther) {
        return;
      }
      this._workspaceDir = page.workspaceDir;
      const isNew = page.generation !== this._log.current?.id;
      this._log.add(page.generation, kernelId, page.events);
      this.changed.emit();
      // Ids restart from 0 in a new generation.
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
      // A cell that names the extension probably loads it.
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
    // Keep reporting a failure until the history could be read.
    this._state = this._state === 'failed' ? 'failed' : 'ready';
    this.changed.emit();
    this.arrived.emit(message);
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
    this.changed.emit();
    this._refreshIfWatched();
    void this._confirmations.look();
  }

  /** Handle a restart that the server reports: only the window that asked for it sees a status. */
  onServerRestart(kernelId: string): void {
    if (kernelId !== this._kernelId) {
      return;
    }
    if (this._sawRestart) {
      this._sawRestart = false;
      return;
    }
    this._startOver();
    this._refreshIfWatched();
    void this._confirmations.look();
  }

  /** End the log of the previous process. */
  private _startOver(): void {
    this._log.end();
    this._state = 'unknown';
    this._restarts += 1;
    this._refreshWhenIdle = true;
    this.changed.emit();
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting') {
      this._isRestarting = true;
      this._sawRestart = true;
      this._startOver();
    } else if (status === 'dead') {
      this._log.end();
      this.changed.emit();
    } else if (
      status === 'idle' &&
      this._refreshWhenIdle &&
      !this._isRestarting
    ) {
      this._refreshWhenIdle = false;
      this._refreshIfWatched();
    }
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

  private readonly _log: EventLog;
  private readonly _full: FullCards;
  private readonly _history = new SerialTask(() => this._catchUp());
  private readonly _confirmations: Confirmations;
  private _state: RuntimeState = 'unknown';
  private _error = '';
  private _workspaceDir = '';
  private _lastSeq = -1;
  private _watched = false;
  private _restarts = 0;
  /** From a restart until JupyterLab connects to the new process. */
  private _isRestarting = false;
  /** From a restart of this window's until the server reports it. */
  private _sawRestart = false;
  private _refreshWhenIdle = false;
}
