import type { IProgress } from '../control/operations.js';

/** Milliseconds between two requests: as fast as a person can read. */
const INTERVAL_MS = 200;

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
