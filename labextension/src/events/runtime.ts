import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { Event, Session } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type {
  IActivity,
  IFleet,
  IKernelEvents,
  IOhRuntime
} from '../tokens.js';
import type { EventsApi } from './api.js';
import { KernelEvents } from './connection.js';
import { FleetEvents, fleetsOf } from './fleet.js';
import { text, type IEventMessage } from './wire.js';

const KERNEL_EVENT =
  'https://events.jupyter.org/jupyter_server/kernel_actions/v1';

type NotebookEvents = KernelEvents<ISessionContext>;

/** Events of the current notebook or console, or of a fleet. */
export class OhRuntime implements IOhRuntime {
  constructor(
    private readonly _shell: JupyterFrontEnd.IShell,
    private readonly _notebooks: INotebookTracker,
    private readonly _consoles: IConsoleTracker | null,
    private readonly _sessions: Session.IManager,
    private readonly _api: EventsApi,
    serverEvents: Event.Stream
  ) {
    serverEvents.connect((_, event) => this._onServerEvent(event));
    this._notebooks.currentChanged.connect(this._follow, this);
    this._consoles?.currentChanged.connect(this._follow, this);
    // Returning from a console does not change the notebook tracker's current widget.
    this._shell.currentChanged?.connect(this._follow, this);
    this._sessions.runningChanged.connect(this._onSessions, this);
    this._onSessions();
    this._follow();
  }

  get current(): IKernelEvents | null {
    return this._current;
  }

  get shown(): IActivity | null {
    return this._fleet ?? this._current;
  }

  get fleets(): readonly IFleet[] {
    return this._fleets;
  }

  choose(name: string): void {
    if (name !== (this._fleet?.name ?? '')) {
      this._fleet?.dispose();
      this._fleet =
        name === ''
          ? null
          : new FleetEvents(name, this._sessions, this._api, this._limit);
      this.shownChanged.emit(this.shown);
    }
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
    const session = this._currentSession();
    const current = session && this._eventsOf(session);
    if (current !== this._current) {
      this._current = current;
      this.currentChanged.emit(current);
      if (!this._fleet) {
        this.shownChanged.emit(current);
      }
    }
  }

  private _onServerEvent(event: Event.Emission): void {
    const isRestart =
      event.schema_id === KERNEL_EVENT &&
      text(event, 'action') === 'restart' &&
      text(event, 'status') === 'success';
    if (isRestart) {
      for (const events of this._known.values()) {
        events.onServerRestart(text(event, 'kernel_id'));
      }
    }
  }

  private _onSessions(): void {
    const fleets = fleetsOf(this._sessions.running());
    if (JSON.stringify(fleets) !== JSON.stringify(this._fleets)) {
      this._fleets = fleets;
      this.fleetsChanged.emit();
    }
  }

  private _currentSession(): ISessionContext | null {
    const widget = this._shell.currentWidget;
    if (widget && this._consoles?.has(widget)) {
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
      events.arrived.connect((_, message) => this.arrived.emit(message));
      // Notify of pending actions even if the panel was never opened.
      void events.refreshWaiting();
      session.disposed.connect(() => {
        this._known.get(session)?.dispose();
        this._known.delete(session);
        this._follow();
      });
    }
    return events;
  }

  private readonly _known = new Map<ISessionContext, NotebookEvents>();
  readonly currentChanged = new Signal<this, IKernelEvents | null>(this);
  readonly shownChanged = new Signal<this, IActivity | null>(this);
  readonly fleetsChanged = new Signal<this, void>(this);
  readonly arrived = new Signal<this, IEventMessage>(this);
  private _current: NotebookEvents | null = null;
  private _fleet: FleetEvents | null = null;
  private _fleets: readonly IFleet[] = [];
  private _limit = 1000;
}
