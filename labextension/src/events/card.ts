import type { IAction, IObservation } from './wire.js';

/** A person has to decide on an Action before it begins. */
export interface IConfirmation {
  /** The kernel was asked for what follows, whether it could answer or not. */
  readonly asked: boolean;
  /** Why, in the kernel's words; "" while that is not known. */
  readonly reason: string;
  /** What an edit would change; "" for other Actions. */
  readonly diff: string;
  /** When it is rejected by itself, in milliseconds since the epoch; null while not known. */
  readonly expires: number | null;
  /** What was decided is under way. */
  readonly busy: boolean;
  /** Why the last decision did not reach the kernel; "" if none was lost. */
  readonly error: string;
}

/**
 * An Action with its Observation, as one entry of the log.
 *
 * Cards are never changed but replaced, so a view may compare them by identity.
 */
export interface ICard {
  readonly key: string;
  readonly generation: string;
  /** Id of the Action, or of an Observation that answers none. */
  readonly id: number;
  readonly action: IAction | null;
  readonly observation: IObservation | null;
  /** What it waits for before it begins; null if it does not wait. */
  readonly confirmation: IConfirmation | null;
  /** The runtime went away before an Observation came. */
  readonly lost: boolean;
}

/** The runtime started afresh: cards below it belong to a new generation. */
export interface IFreshStart {
  readonly key: string;
  /** Whether it is still the same kernel, restarted. */
  readonly sameKernel: boolean;
}

export type LogEntry = ICard | IFreshStart;

/** Whether an entry is a card rather than a fresh start. */
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

/** Whether an Observation is still to come for a card. */
export function isPending(card: ICard): boolean {
  return (
    card.action !== null &&
    RUNNABLE.has(card.action.action) &&
    (card.observation === null || card.observation.observation === 'null')
  );
}

/** Whether a card may queue for the shell or the kernel, and puts out text meanwhile. */
export function isLive({ action }: ICard): boolean {
  return action?.action === 'run' || action?.action === 'run_ipython';
}

/** Which of two copies to keep: the one that arrived, unless it tells less. */
export function preferred<T extends IAction | IObservation>(
  stored: T | null,
  arrived: T
): T {
  const tellsLess =
    stored?.id === arrived.id && arrived.clipped && !stored.clipped;
  return stored !== null && tellsLess ? stored : arrived;
}
