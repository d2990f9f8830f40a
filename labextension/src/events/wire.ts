/**
 * Events as a kernel sends them: OpenHands' JSON of an Action or an Observation.
 *
 * What arrives was written by another process, so nothing but the envelope is
 * taken for granted: `args` and `extras` are read through `text` and its kin.
 */

/** Who caused an event: a program, the person, or the runtime itself. */
export type EventSource = 'agent' | 'user' | 'environment';

/** What Actions and Observations have in common. */
interface IEvent {
  /** Position in the log of its generation, counted from 0. */
  readonly id: number;
  /** ISO 8601 time of recording. */
  readonly timestamp: string | null;
  readonly source: EventSource | null;
  /** One sentence for people. */
  readonly message: string;
  /** The kernel shortened long texts or left images out. */
  readonly clipped: boolean;
}

/** Something to be done. */
export interface IAction extends IEvent {
  readonly action: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Arguments that OpenHands does not know, such as `replace_all`. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** What came before an Action began. */
export interface IHandling {
  /** By which door a person decided on it; "" if nobody had to. */
  readonly decidedBy: string;
  /** For how long it waited for that. */
  readonly waitedSeconds: number;
  /** For how long it queued behind others for the shell or the kernel. */
  readonly queuedSeconds: number;
  /** Whether it was cancelled before that was over. */
  readonly neverBegan: boolean;
}

/** What came of an Action. */
export interface IObservation extends IEvent {
  readonly observation: string;
  readonly content: string;
  readonly extras: Readonly<Record<string, unknown>>;
  /** Id of the Action that it answers. */
  readonly cause: number | null;
  readonly handling?: IHandling;
}

export type WireEvent = IAction | IObservation;

/** The content of an iopub message of type `oh_jupyter_event`. */
export interface IEventMessage {
  /** Changes whenever the runtime in the kernel starts afresh. */
  readonly generation: string;
  /** Counts the messages of a generation, so that a lost one is noticed. */
  readonly seq: number;
  readonly event: WireEvent;
}

/** Whether an event is an Action. */
export function isAction(event: WireEvent): event is IAction {
  return 'action' in event;
}

/** Whether a value is a plain JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A string of a JSON object, or "" where there is none. */
export function text(
  record: Readonly<Record<string, unknown>> | undefined,
  key: string
): string {
  const value = record?.[key];
  return typeof value === 'string' ? value : '';
}

/** A number of a JSON object, or 0 where there is none. */
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
    neverBegan: value.never_began === true
  };
}

function source(value: unknown): EventSource | null {
  return value === 'agent' || value === 'user' || value === 'environment'
    ? value
    : null;
}

/** Read one event; null if it is none. */
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
    const observation: IObservation = {
      ...common,
      observation: value.observation,
      content: text(value, 'content'),
      extras: isRecord(value.extras) ? value.extras : {},
      cause: typeof value.cause === 'number' ? value.cause : null
    };
    const ours = isRecord(value.oh_jupyter) ? value.oh_jupyter.handling : null;
    return isRecord(ours)
      ? { ...observation, handling: handling(ours) }
      : observation;
  }
  return null;
}

/** Read the content of an `oh_jupyter_event` message; null if it is not one. */
export function parseMessage(content: unknown): IEventMessage | null {
  if (!isRecord(content) || typeof content.generation !== 'string') {
    return null;
  }
  const event = parseEvent(content.event);
  return event === null || typeof content.seq !== 'number'
    ? null
    : { generation: content.generation, seq: content.seq, event };
}
