import type { IField } from './form.js';
import type { IAction, IObservation } from './wire.js';

/** State of an Action that needs a person's decision before it starts. */
export interface IConfirmation {
  /** The kernel was asked for the fields below, with or without success. */
  readonly asked: boolean;
  /** Name of the agent that asks; "" if unknown. */
  readonly agent: string;
  /** Reason, in the kernel's words; "" while unknown. */
  readonly reason: string;
  /** Diff of a pending edit; "" for other Actions. */
  readonly diff: string;
  /** Time of automatic rejection, in milliseconds since the epoch; null while unknown. */
  readonly expires: number | null;
  /** Whether it would run in a sandbox; null if unknown, or where nobody expects one. */
  readonly sandboxed: boolean | null;
  /** Fields of an agent's question; null for other Actions, or if unknown. */
  readonly form: readonly IField[] | null;
  /** A decision is being sent. */
  readonly busy: boolean;
  /** Why the last decision did not reach the kernel; "" if none was lost. */
  readonly error: string;
}

/** State before the kernel was asked. */
export const UNKNOWN: IConfirmation = {
  asked: false,
  agent: '',
  reason: '',
  diff: '',
  expires: null,
  sandboxed: null,
  form: null,
  busy: false,
  error: ''
};

/** Action with its Observation. Cards are replaced, never changed, so views compare by identity. */
export interface ICard {
  readonly key: string;
  readonly generation: string;
  /** Id of the Action, or of an Observation without one. */
  readonly id: number;
  readonly action: IAction | null;
  readonly observation: IObservation | null;
  /** Null if it does not wait for a decision. */
  readonly confirmation: IConfirmation | null;
  /** The runtime ended before an Observation arrived. */
  readonly lost: boolean;
}

/** Identity of a card and its Action. */
export type EventRef = Pick<ICard, 'generation' | 'id'>;

/** Start of a new runtime: the cards below belong to a new generation. */
export interface IFreshStart {
  readonly key: string;
  /** Whether the same kernel restarted. */
  readonly sameKernel: boolean;
}

export type LogEntry = ICard | IFreshStart;

/** Return whether an entry is a card rather than a fresh start. */
export function isCard(entry: LogEntry): entry is ICard {
  return 'generation' in entry;
}

const RUNNABLE: ReadonlySet<string> = new Set([
  'run',
  'run_ipython',
  'read',
  'write',
  'edit',
  'browse',
  'browse_interactive',
  'call_tool_mcp'
]);

/** Return whether a card still expects an Observation. */
export function isPending(card: ICard): boolean {
  return (
    card.action !== null &&
    RUNNABLE.has(card.action.action) &&
    (card.observation === null || card.observation.observation === 'null')
  );
}

/** Return whether a card may queue for shell or kernel and print output meanwhile. */
export function isLive({ action }: ICard): boolean {
  return action?.action === 'run' || action?.action === 'run_ipython';
}

/** Return whether a card is the one in a command's arguments, as far as these name one. */
export function matches(
  { id, generation }: EventRef,
  args: { event?: unknown; generation?: unknown }
): boolean {
  return (
    id === (args.event ?? id) && generation === (args.generation ?? generation)
  );
}

/** Prefer the newer copy of an event, unless it is the clipped one. */
export function preferred<T extends IAction | IObservation>(
  stored: T | null,
  arrived: T
): T {
  const isLess =
    stored?.id === arrived.id && arrived.clipped && !stored.clipped;
  return stored !== null && isLess ? stored : arrived;
}
