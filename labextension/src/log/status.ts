import { isPending, type ICard } from '../events/card.js';
import { isRecord, type IObservation } from '../events/wire.js';

/** How an Action went. */
export type Outcome =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'unconfirmed'
  | 'ok'
  | 'failed'
  | 'unfinished'
  | 'rejected'
  | 'lost'
  | 'unbegun'
  | 'none';

export interface IStatus {
  readonly outcome: Outcome;
  /** Exit status of a shell command that ended. */
  readonly exitCode?: number;
}

/** IPython's rule above a traceback, which is all that tells of an exception. */
const TRACEBACK = /^-{40,}\n.*Traceback \(most recent call last\)/m;

/**
 * Read how an Action went from its Observation, or from there being none.
 *
 * @param isQueued - Whether others have what it needs, where that is known.
 */
export function status(card: ICard, isQueued = false): IStatus {
  if (card.confirmation !== null) {
    return { outcome: 'waiting' };
  }
  if (isPending(card)) {
    if (card.lost) {
      return { outcome: 'lost' };
    }
    // An empty answer: its client wants to hear from a person before it asks again.
    const begun = isQueued ? 'queued' : 'running';
    return { outcome: card.observation ? 'unconfirmed' : begun };
  }
  return card.observation ? answered(card.observation) : { outcome: 'none' };
}

function answered(observation: IObservation): IStatus {
  if (observation.handling?.neverBegan) {
    return { outcome: 'unbegun' };
  }
  switch (observation.observation) {
    case 'run':
      return shell(observation);
    case 'error':
      return { outcome: 'failed' };
    case 'user_rejected':
      return { outcome: 'rejected' };
    case 'null':
    case 'think':
      return { outcome: 'none' };
    default:
      return { outcome: hasFailed(observation) ? 'failed' : 'ok' };
  }
}

function shell(observation: IObservation): IStatus {
  const { metadata, exit_code } = observation.extras;
  const code = isRecord(metadata) ? metadata.exit_code : exit_code;
  if (typeof code !== 'number') {
    return { outcome: 'none' };
  }
  // -1 on the wire: the command is still running.
  return code === -1
    ? { outcome: 'unfinished' }
    : { outcome: code === 0 ? 'ok' : 'failed', exitCode: code };
}

function hasFailed({ observation, content, extras }: IObservation): boolean {
  switch (observation) {
    case 'edit':
      return content.startsWith('ERROR:');
    case 'browse':
      return extras.error === true;
    case 'run_ipython':
      return TRACEBACK.test(withoutAnsi(content));
    case 'mcp':
      return /"isError":\s*true/.test(content);
    default:
      return false;
  }
}

/** A terminal's text without its colours. */
export function withoutAnsi(content: string): string {
  return content.replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, '');
}

/** Seconds that an Action ran, without those that it waited; null where they are not known. */
export function seconds(card: ICard): number | null {
  const start = Date.parse(card.action?.timestamp ?? '');
  const end = Date.parse(card.observation?.timestamp ?? '');
  const {
    waitedSeconds = 0,
    queuedSeconds = 0,
    neverBegan = false
  } = card.observation?.handling ?? {};
  return end >= start && !neverBegan
    ? Math.max(0, (end - start) / 1000 - waitedSeconds - queuedSeconds)
    : null;
}
