import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { status } from './status.js';

const INTERRUPTIBLE: readonly string[] = ['run', 'run_ipython'];

/** Keys of the cards that can be stopped: of each kind, what began first runs, the rest is queued. */
export function findStoppable(
  entries: readonly LogEntry[]
): ReadonlySet<string> {
  const running = entries
    .filter(isCard)
    .filter(card => status(card).outcome === 'running');
  const first = INTERRUPTIBLE.map(type =>
    running.find(({ action }) => action?.action === type)
  );
  return new Set(first.filter(card => card !== undefined).map(keyOf));
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

function keyOf({ key }: ICard): string {
  return key;
}
