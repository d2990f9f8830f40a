import { isRecord, text } from './wire.js';

/** Progress of an Action. */
export interface IProgress {
  readonly state: 'waiting' | 'queued' | 'running' | 'ended';
  /** Last lines of its output so far. */
  readonly text: string;
}

/** Milliseconds between two requests: as fast as a person can read. */
const INTERVAL_MS = 200;

/** Parse the kernel's reply. */
export function parseProgress(reply: unknown): IProgress {
  const record = isRecord(reply) ? reply : {};
  const state = text(record, 'state');
  return state === 'waiting' || state === 'queued' || state === 'running'
    ? { state, text: text(record, 'text') }
    : { state: 'ended', text: '' };
}

/** Yield the progress of an Action until it ends or cannot be read; `look` resolves at each change. */
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
