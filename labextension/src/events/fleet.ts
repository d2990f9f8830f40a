import type { ISessionContext } from '@jupyterlab/apputils';
import type { Session } from '@jupyterlab/services';

import type { IProgress } from '../control/operations.js';
import type {
  Decision,
  IActivity,
  IFleet,
  IOpenCard,
  RuntimeState
} from '../tokens.js';
import type { IVerdict } from './api.js';
import { isCard, type EventRef, type ICard } from './card.js';
import { KernelEvents, type Api, type IWatchedSession } from './connection.js';
import { RuntimeGoneError } from './errors.js';
import { WatchedEvents } from './watched.js';

/** Type of a fleet's sessions on the server. */
const FLEET = 'fleet';

/** States in order of priority. */
const STATES = ['failed', 'ready', 'not-loaded', 'unknown'] as const;

type ISessions = Pick<
  Session.IManager,
  'running' | 'runningChanged' | 'connectTo'
>;

type ISessionModel = Pick<Session.IModel, 'name' | 'type'>;

/** Kernel of a fleet, with its number. */
interface IMember {
  readonly number: string;
  readonly session: Session.ISessionConnection;
  readonly events: KernelEvents;
}

/** Parse a session's fleet and number; null for other sessions. */
export function fleetMember({
  name,
  type
}: ISessionModel): { readonly fleet: string; readonly number: string } | null {
  const [, fleet, number] = /^(.+) (\d+)$/.exec(name) ?? [];
  return type === FLEET && fleet && number ? { fleet, number } : null;
}

/** Return the fleets that have sessions. */
export function fleetsOf(sessions: Iterable<ISessionModel>): readonly IFleet[] {
  const sizes = new Map<string, number>();
  for (const session of sessions) {
    const { fleet } = fleetMember(session) ?? {};
    if (fleet) {
      sizes.set(fleet, (sizes.get(fleet) ?? 0) + 1);
    }
  }
  return [...sizes].map(([name, size]) => ({ name, size }));
}

/** Events of all kernels of a fleet, sorted by time. */
export class FleetEvents extends WatchedEvents implements IActivity {
  constructor(
    name: string,
    private readonly _sessions: ISessions,
    private readonly _api: Api,
    private _limit: number
  ) {
    super();
    this.name = name;
    this._sessions.runningChanged.connect(this._follow, this);
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

  /** Stop following the kernels, which keep running. */
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

  async look(card: EventRef, seen: IProgress | null): Promise<IProgress> {
    return this._eventsOf(card).look(card, seen);
  }

  async stop(card: ICard): Promise<void> {
    await this._eventsOf(card).stop(card);
  }

  readonly kernelOf = (card: ICard): string =>
    this._memberOf(card)?.number ?? '';

  /** Add new kernels; a replaced kernel keeps its cards. */
  private _follow(): void {
    const known = new Set(this._members.map(({ session }) => session.id));
    for (const model of this._sessions.running()) {
      const member = fleetMember(model);
      if (member?.fleet === this.name && !known.has(model.id)) {
        this._add(model, member.number);
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
    events.arrived.connect((_, message) => this.arrived.emit(message));
    this._members.push({ number, session, events });
    void events.refresh();
  }

  private _update(): void {
    this._entries = null;
    this.changed.emit();
  }

  private _memberOf({ generation }: EventRef): IMember | undefined {
    return this._members.find(({ events }) => events.has(generation));
  }

  private _eventsOf(card: EventRef): KernelEvents {
    const member = this._memberOf(card);
    if (!member) {
      throw new RuntimeGoneError();
    }
    return member.events;
  }

  private readonly _members: IMember[] = [];
  private _entries: readonly ICard[] | null = null;
}

/** Wrap a plain session like that of a document. */
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

/** Merge the cards of several kernels by time, keeping each kernel's order. */
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
