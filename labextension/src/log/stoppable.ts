import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { status } from './status.js';

const INTERRUPTIBLE: readonly string[] = ['run', 'run_ipython'];

/** Keys of the cards that can be stopped: of each kernel and kind, what began first runs, the rest is queued. */
export function findStoppable(
  entries: readonly LogEntry[]
): ReadonlySet<string> {
  const first = new Map<string, string>();
  for (const card of entries.filter(isCard)) {
    const type = card.action?.action ?? '';
    const queue = `${card.generation}/${type}`;
    const isRunning = status(card).outcome === 'running';
    if (isRunning && INTERRUPTIBLE.includes(type) && !first.has(queue)) {
      first.set(queue, card.key);
    }
  }
  return new Set(first.values());
}

/** An Action as agents send it, whole as far as it is known. */
export function actionJson({ action }: ICard): string {
  const { confirmation_state: _, ...args } = action?.args ?? {};
  const options = action?.options ? { oh_jupyter: action.options } : {};
  return JSON.stringify(
    { action: { action: action?.action, args, ...options } },
    null,
    2
  );
}
