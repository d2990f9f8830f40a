import type { ISessionContext } from '@jupyterlab/apputils';
import type { Session } from '@jupyterlab/services';

import type {
  Decision,
  IActivity,
  IFleet,
  IOpenCard,
  RuntimeState
} from '../tokens.js';
import type { IVerdict } from './api.js';
import { isCard, type ICard } from './card.js';
import { KernelEvents, type Api, type IWatchedSession } from './connection.js';
import { RuntimeGoneError } from './errors.js';
import type { IProgress } from './progress.js';
import { WatchedEvents } from './watched.js';

/** Type of the sessions that a fleet has on the server. */
const FLEET = 'fleet';

/** What is told of several kernels, what matters most first. */
const STATES: readonly RuntimeState[] = [
  'failed',
  'ready',
  'not-loaded',
  'unknown'
];

/** What is used of the sessions of a server. */
type ISessions = Pick<
  Session.IManager,
  'running' | 'runningChanged' | 'connectTo'
>;

type ISessionModel = Pick<Session.IModel, 'name' | 'type'>;

/** A kernel of a fleet, and its number among them. */
interface IMember {
  readonly number: string;
  readonly session: Session.ISessionConnection;
  readonly events: KernelEvents;
}

/** Of which fleet a session is, and as which number; null if it is of none. */
export function placeOf({
  name,
  type
}: ISessionModel): { readonly fleet: string; readonly number: string } | null {
  const [, fleet, number] = /^(.+) (\d+)$/.exec(name) ?? [];
  return type === FLEET && fleet && number ? { fleet, number } : null;
}

/** The fleets that have sessions. */
export function fleetsOf(sessions: Iterable<ISessionModel>): readonly IFleet[] {
  const sizes = new Map<string, number>();
  for (const session of sessions) {
    const { fleet } = placeOf(session) ?? {};
    if (fleet) {
      sizes.set(fleet, (sizes.get(fleet) ?? 0) + 1);
    }
  }
  return [...sizes].map(([name, size]) => ({ name, size }));
}

/** The events of all kernels of a fleet, in the order of their times. */
export class FleetEvents extends WatchedEvents implements IActivity {
  /**
   * @param name - Of the fleet.
   * @param sessions - Those of the server; whichever is of the fleet is followed.
   * @param api - Where to ask for history and for what waits.
   * @param limit - How many cards to keep of each kernel.
   */
  constructor(name: string, sessions: ISessions, api: Api, limit: number) {
    super();
    this.name = name;
    this._sessions = sessions;
    this._api = api;
    this._limit = limit;
    sessions.runningChanged.connect(this._follow, this);
    this._follow();
  }

  readonly name: string;

  get state(): RuntimeState {
    const states = this._members.map(({ events }) => events.state);
    return STATES.find(state => states.includes(state)) ?? 'no-kernel';
  }

  get error(): string {
    return this._members.map(({ events }) => events.error).find(Boolean) ?? '';
  }

  get workspaceDir(): string {
    return this._members.at(-1)?.events.workspaceDir ?? '';
  }

  get entries(): readonly ICard[] {
    this._entries ??= merged(
      this._members.map(({ events }) => events.entries.filter(isCard))
    );
    return this._entries;
  }

  get waiting(): readonly ICard[] {
    return this.entries.filter(({ confirmation }) => confirmation !== null);
  }

  set limit(limit: number) {
    this._limit = limit;
    this._members.forEach(({ events }) => (events.limit = limit));
  }

  /** Follow the kernels no more, which go on. */
  override dispose(): void {
    super.dispose();
    for (const { events, session } of this._members) {
      events.dispose();
      session.dispose();
    }
  }

  async refresh(): Promise<void> {
    await Promise.all(this._members.map(({ events }) => events.refresh()));
  }

  async load(): Promise<void> {
    await Promise.all(
      this._members
        .filter(({ events }) => events.state === 'not-loaded')
        .map(({ events }) => events.load())
    );
  }

  async complete(card: ICard): Promise<void> {
    await this._eventsOf(card).complete(card);
  }

  open(card: ICard): IOpenCard {
    return (
      this._memberOf(card)?.events.open(card) ?? {
        ready: Promise.reject(new RuntimeGoneError()),
        close: () => undefined
      }
    );
  }

  async decide(card: ICard, verdict: IVerdict): Promise<Decision> {
    const events = this._memberOf(card)?.events;
    return events ? events.decide(card, verdict) : 'gone';
  }

  async look(
    card: Pick<ICard, 'generation' | 'id'>,
    seen: IProgress | null
  ): Promise<IProgress> {
    return this._eventsOf(card).look(card, seen);
  }

  async stop(card: ICard): Promise<void> {
    await this._eventsOf(card).stop(card);
  }

  readonly kernelOf = (card: ICard): string =>
    this._memberOf(card)?.number ?? '';

  /** A kernel that was replaced keeps its cards. */
  private _follow(): void {
    const known = new Set(this._members.map(({ session }) => session.id));
    for (const model of this._sessions.running()) {
      const place = placeOf(model);
      if (place?.fleet === this.name && !known.has(model.id)) {
        this._add(model, place.number);
      }
    }
    this._update();
  }

  private _add(model: Session.IModel, number: string): void {
    const session = this._sessions.connectTo({
      model,
      kernelConnectionOptions: { handleComms: false }
    });
    const events = new KernelEvents(watched(session), this._api, this._limit);
    events.changed.connect(this._update, this);
    events.arrived.connect((_, message) => this._arrived.emit(message));
    this._members.push({ number, session, events });
    void events.refresh();
  }

  private _update(): void {
    this._entries = null;
    this._changed.emit();
  }

  private _memberOf({
    generation
  }: Pick<ICard, 'generation'>): IMember | undefined {
    return this._members.find(({ events }) => events.has(generation));
  }

  private _eventsOf(card: Pick<ICard, 'generation'>): KernelEvents {
    const member = this._memberOf(card);
    if (!member) {
      throw new RuntimeGoneError();
    }
    return member.events;
  }

  private readonly _sessions: ISessions;
  private readonly _api: Api;
  private readonly _members: IMember[] = [];
  private _limit: number;
  private _entries: readonly ICard[] | null = null;
}

/** A session by itself, as it is watched in a document. */
function watched(session: Session.ISessionConnection): IWatchedSession {
  const { iopubMessage, kernelChanged, statusChanged, name } = session;
  const { connectionStatusChanged, propertyChanged } = session;
  const signals = {
    iopubMessage,
    kernelChanged,
    statusChanged,
    connectionStatusChanged,
    propertyChanged
  } as unknown as Pick<ISessionContext, keyof IWatchedSession>;
  return {
    ...signals,
    name,
    get session() {
      return session.isDisposed ? null : session;
    }
  };
}

/** The cards of several kernels by their times, those of one in their order. */
function merged(logs: readonly (readonly ICard[])[]): readonly ICard[] {
  const timed = logs.flatMap(cards => {
    let last = 0;
    return cards.map(card => {
      const { timestamp } = card.action ?? card.observation ?? {};
      last = Math.max(last, Date.parse(timestamp ?? '') || 0);
      return { card, time: last };
    });
  });
  return timed.sort((a, b) => a.time - b.time).map(({ card }) => card);
}
