import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { Session } from '@jupyterlab/services';
import { Signal, type ISignal } from '@lumino/signaling';

import type {
  IActivity,
  IFleet,
  IKernelEvents,
  IOhRuntime
} from '../tokens.js';
import type { EventsApi } from './api.js';
import { KernelEvents } from './connection.js';
import { FleetEvents, fleetsOf } from './fleet.js';
import type { IEventMessage } from './wire.js';

type NotebookEvents = KernelEvents<ISessionContext>;

/** Follows the notebook or console in front, or a fleet, and keeps the log of each. */
export class OhRuntime implements IOhRuntime {
  /**
   * @param shell - Tells what is in front.
   * @param notebooks - The open notebooks.
   * @param consoles - The open consoles, where there can be any.
   * @param sessions - Those of the server, fleets among them.
   * @param api - Where to ask for history.
   */
  constructor(
    shell: JupyterFrontEnd.IShell,
    notebooks: INotebookTracker,
    consoles: IConsoleTracker | null,
    sessions: Session.IManager,
    api: EventsApi
  ) {
    this._shell = shell;
    this._notebooks = notebooks;
    this._consoles = consoles;
    this._sessions = sessions;
    this._api = api;
    notebooks.currentChanged.connect(this._follow, this);
    consoles?.currentChanged.connect(this._follow, this);
    // Going back from a console leaves the notebook tracker's current as it was.
    shell.currentChanged?.connect(this._follow, this);
    sessions.runningChanged.connect(this._onSessions, this);
    this._onSessions();
    this._follow();
  }

  get current(): IKernelEvents | null {
    return this._current;
  }

  get currentChanged(): ISignal<this, IKernelEvents | null> {
    return this._currentChanged;
  }

  get shown(): IActivity | null {
    return this._fleet ?? this._current;
  }

  get shownChanged(): ISignal<this, IActivity | null> {
    return this._shownChanged;
  }

  get fleets(): readonly IFleet[] {
    return this._fleets;
  }

  get fleetsChanged(): ISignal<this, void> {
    return this._fleetsChanged;
  }

  choose(name: string): void {
    if (name !== (this._fleet?.name ?? '')) {
      this._fleet?.dispose();
      this._fleet =
        name === ''
          ? null
          : new FleetEvents(name, this._sessions, this._api, this._limit);
      this._shownChanged.emit(this.shown);
    }
  }

  get arrived(): ISignal<this, IEventMessage> {
    return this._arrived;
  }

  get limit(): number {
    return this._limit;
  }
  set limit(limit: number) {
    this._limit = limit;
    for (const events of this._known.values()) {
      events.limit = limit;
    }
    if (this._fleet) {
      this._fleet.limit = limit;
    }
  }

  private _follow(): void {
    const session = this._sessionInFront();
    const current = session && this._eventsOf(session);
    if (current !== this._current) {
      this._current = current;
      this._currentChanged.emit(current);
      if (!this._fleet) {
        this._shownChanged.emit(current);
      }
    }
  }

  private _onSessions(): void {
    const fleets = fleetsOf(this._sessions.running());
    if (JSON.stringify(fleets) !== JSON.stringify(this._fleets)) {
      this._fleets = fleets;
      this._fleetsChanged.emit();
    }
  }

  private _sessionInFront(): ISessionContext | null {
    const front = this._shell.currentWidget;
    if (front && this._consoles?.has(front)) {
      return this._consoles.currentWidget?.sessionContext ?? null;
    }
    const panel =
      this._notebooks.currentWidget ?? this._consoles?.currentWidget;
    return panel?.sessionContext ?? null;
  }

  private _eventsOf(session: ISessionContext): NotebookEvents {
    let events = this._known.get(session);
    if (!events) {
      events = new KernelEvents(session, this._api, this._limit);
      this._known.set(session, events);
      events.arrived.connect((_, message) => this._arrived.emit(message));
      // What waits is told even to those who have not opened the panel.
      void events.refreshWaiting();
      session.disposed.connect(() => {
        this._known.get(session)?.dispose();
        this._known.delete(session);
        this._follow();
      });
    }
    return events;
  }

  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _notebooks: INotebookTracker;
  private readonly _consoles: IConsoleTracker | null;
  private readonly _api: EventsApi;
  private readonly _sessions: Session.IManager;
  private readonly _known = new Map<ISessionContext, NotebookEvents>();
  private readonly _currentChanged = new Signal<this, IKernelEvents | null>(
    this
  );
  private readonly _shownChanged = new Signal<this, IActivity | null>(this);
  private readonly _fleetsChanged = new Signal<this, void>(this);
  private readonly _arrived = new Signal<this, IEventMessage>(this);
  private _current: NotebookEvents | null = null;
  private _fleet: FleetEvents | null = null;
  private _fleets: readonly IFleet[] = [];
  private _limit = 1000;
}
