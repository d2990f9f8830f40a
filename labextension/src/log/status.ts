import { isPending, type ICard } from '../events/card.js';
import { isRecord, type IObservation } from '../events/wire.js';

/** Outcome of an Action. */
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
  | 'cancelled'
  | 'none';

export interface IStatus {
  readonly outcome: Outcome;
  /** Exit code of a shell command that ended. */
  readonly exitCode?: number;
}

/** Return the outcome of a card, given whether it is known to be queued. */
export function status(card: ICard, isQueued = false): IStatus {
  if (card.confirmation !== null) {
    return { outcome: 'waiting' };
  }
  if (isPending(card)) {
    if (card.lost) {
      return { outcome: 'lost' };
    }
    // A null Observation: its client waits for a person.
    const progress = isQueued ? 'queued' : 'running';
    return { outcome: card.observation ? 'unconfirmed' : progress };
  }
  return card.observation ? observed(card.observation) : { outcome: 'none' };
}

function observed(observation: IObservation): IStatus {
  if (observation.handling?.neverStarted) {
    return { outcome: 'cancelled' };
  }
  switch (observation.observation) {
    case 'run':
      return shell(observation);
    case 'user_rejected':
      return { outcome: 'rejected' };
    case 'null':
    case 'think':
      return { outcome: 'none' };
    default:
      return { outcome: observation.outcome === 'done' ? 'ok' : 'failed' };
  }
}

function shell(observation: IObservation): IStatus {
  const { metadata, exit_code } = observation.extras;
  const code = isRecord(metadata) ? metadata.exit_code : exit_code;
  if (typeof code !== 'number') {
    return { outcome: 'none' };
  }
  // -1 means that the command is still running.
  return code === -1
    ? { outcome: 'unfinished' }
    : { outcome: code === 0 ? 'ok' : 'failed', exitCode: code };
}

/** Remove ANSI codes. */
export function withoutAnsi(content: string): string {
  return content.replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, '');
}

/** Return an Action's run time in seconds, without waiting; null if unknown. */
export function seconds(card: ICard): number | null {
  const start = Date.parse(card.action?.timestamp ?? '');
  const end = Date.parse(card.observation?.timestamp ?? '');
  const {
    waitedSeconds = 0,
    queuedSeconds = 0,
    neverStarted = false
  } = card.observation?.handling ?? {};
  return end >= start && !neverStarted
    ? Math.max(0, (end - start) / 1000 - waitedSeconds - queuedSeconds)
    : null;
}
