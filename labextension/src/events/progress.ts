import { isRecord, text } from './wire.js';

/** How an Action goes on. */
export interface IProgress {
  readonly state: 'waiting' | 'queued' | 'running' | 'ended';
  /** The last lines of its output so far. */
  readonly text: string;
}

/** Milliseconds between two looks: as often as a person can read. */
const INTERVAL_MS = 200;

/** Read the kernel's answer. */
export function parseProgress(reply: unknown): IProgress {
  const record = isRecord(reply) ? reply : {};
  const state = text(record, 'state');
  return state === 'waiting' || state === 'queued' || state === 'running'
    ? { state, text: text(record, 'text') }
    : { state: 'ended', text: '' };
}

/**
 * What is new about an Action, until it ends or cannot be looked at.
 *
 * @param look - Answers once there is something else than was seen.
 */
export async function* progressOf(
  look: (seen: IProgress | null) => Promise<IProgress>
): AsyncGenerator<IProgress, void> {
  let seen: IProgress | null = null;
  for (;;) {
    try {
      seen = await look(seen);
    } catch {
      return;
    }
    if (seen.state === 'ended') {
      return;
    }
    yield seen;
    await new Promise(resolve => setTimeout(resolve, INTERVAL_MS));
  }
}
