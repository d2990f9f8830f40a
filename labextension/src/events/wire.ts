/**
 * Events as a kernel sends them: OpenHands' JSON of an Action or an Observation.
 *
 * Only the envelope is trusted: read `args` and `extras` with `text` and `number`.
 */

/** Cause of an event: a program, the person, or the runtime itself. */
export type EventSource = 'agent' | 'user' | 'environment';

/** Fields of Actions and Observations. */
interface IEvent {
  /** Position in the log of its generation, from 0. */
  readonly id: number;
  /** ISO 8601 time. */
  readonly timestamp: string | null;
  readonly source: EventSource | null;
  readonly message: string;
  /** Whether the kernel clipped long texts or left out images. */
  readonly clipped: boolean;
}

/** Request to do something. */
export interface IAction extends IEvent {
  readonly action: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Arguments outside OpenHands' protocol, such as `replace_all`. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** History of an Action before it started. */
export interface IHandling {
  /** Where a person decided on it; "" if no decision was needed. */
  readonly decidedBy: string;
  /** Time it waited for that decision. */
  readonly waitedSeconds: number;
  /** Time it queued for the shell or the kernel. */
  readonly queuedSeconds: number;
  /** Whether it was cancelled before it started. */
  readonly neverStarted: boolean;
  /** Whether a command ran in a sandbox; undefined if none is set up. */
  readonly sandboxed?: boolean;
}

const OUTCOMES = [
  'done',
  'failed',
  'rejected',
  'cancelled',
  'timed_out'
] as const;

/** End of an Action; a command is done whatever its exit code is. */
export type ObservationOutcome = (typeof OUTCOMES)[number];

/** Result of an Action. */
export interface IObservation extends IEvent {
  readonly observation: string;
  readonly outcome: ObservationOutcome;
  readonly content: string;
  readonly extras: Readonly<Record<string, unknown>>;
  /** Id of its Action. */
  readonly cause: number | null;
  readonly handling?: IHandling;
}

export type WireEvent = IAction | IObservation;

/** Content of an `oh_jupyter_event` message. */
export interface IEventMessage {
  /** Changes with every new runtime in the kernel. */
  readonly generation: string;
  /** Sequence number within a generation, to detect lost messages. */
  readonly seq: number;
  readonly event: WireEvent;
}

export function isAction(event: WireEvent): event is IAction {
  return 'action' in event;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Return a string field, or "". */
export function text(
  record: Readonly<Record<string, unknown>> | undefined,
  key: string
): string {
  const value = record?.[key];
  return typeof value === 'string' ? value : '';
}

/** Return a finite number field, or 0. */
export function number(
  record: Readonly<Record<string, unknown>>,
  key: string
): number {
  const value = record[key];
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function handling(value: Readonly<Record<string, unknown>>): IHandling {
  return {
    decidedBy: text(value, 'decided_by'),
    waitedSeconds: number(value, 'waited_seconds'),
    queuedSeconds: number(value, 'queued_seconds'),
    neverStarted: value.never_began === true,
    ...(typeof value.sandboxed === 'boolean' && { sandboxed: value.sandboxed })
  };
}

/** Return the outcome of a type of Observation, which may name its own. */
export function outcomeOf(type: string, named?: unknown): ObservationOutcome {
  const usual = { error: 'failed', user_rejected: 'rejected' } as const;
  return (
    OUTCOMES.find(outcome => outcome === named) ??
    (type === 'error' || type === 'user_rejected' ? usual[type] : 'done')
  );
}

function source(value: unknown): EventSource | null {
  return value === 'agent' || value === 'user' || value === 'environment'
    ? value
    : null;
}

/** Parse one event; null if invalid. */
export function parseEvent(value: unknown): WireEvent | null {
  if (!isRecord(value) || !Number.isSafeInteger(value.id)) {
    return null;
  }
  const common: IEvent = {
    id: value.id as number,
    timestamp: text(value, 'timestamp') || null,
    source: source(value.source),
    message: text(value, 'message'),
    clipped: value.clipped === true
  };
  if (typeof value.action === 'string') {
    const args = isRecord(value.args) ? value.args : {};
    const action = { ...common, action: value.action, args };
    return isRecord(value.oh_jupyter)
      ? { ...action, options: value.oh_jupyter }
      : action;
  }
  if (typeof value.observation === 'string') {
    const ours = isRecord(value.oh_jupyter) ? value.oh_jupyter : {};
    const observation: IObservation = {
      ...common,
      observation: value.observation,
      outcome: outcomeOf(value.observation, ours.outcome),
      content: text(value, 'content'),
      extras: isRecord(value.extras) ? value.extras : {},
      cause: typeof value.cause === 'number' ? value.cause : null
    };
    return isRecord(ours.handling)
      ? { ...observation, handling: handling(ours.handling) }
      : observation;
  }
  return null;
}

/** Parse the content of an `oh_jupyter_event` message; null if invalid. */
export function parseMessage(content: unknown): IEventMessage | null {
  if (!isRecord(content) || typeof content.generation !== 'string') {
    return null;
  }
  const event = parseEvent(content.event);
  return event === null || typeof content.seq !== 'number'
    ? null
    : { generation: content.generation, seq: content.seq, event };
}
