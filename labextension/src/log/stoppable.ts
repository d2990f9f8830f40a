import { isCard, isLive, type ICard, type LogEntry } from '../events/card.js';
import { status } from './status.js';

/** Return the keys of running cards: of each kernel and type, the first runs and the rest is queued. */
export function findStoppable(
  entries: readonly LogEntry[]
): ReadonlySet<string> {
  const first = new Map<string, string>();
  for (const card of entries.filter(isCard)) {
    const queue = `${card.generation}/${card.action?.action}`;
    const isRunning = status(card).outcome === 'running';
    if (isRunning && isLive(card) && !first.has(queue)) {
      first.set(queue, card.key);
    }
  }
  return new Set(first.values());
}

/** Return an Action as agents send it. */
export function actionJson({ action }: ICard): string {
  const { confirmation_state: _, ...args } = action?.args ?? {};
  const options = action?.options ? { oh_jupyter: action.options } : {};
  return JSON.stringify(
    { action: { action: action?.action, args, ...options } },
    null,
    2
  );
}
