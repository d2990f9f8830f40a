import type { ITurn } from '../agent/turn.js';
import { isCard, isPending, type LogEntry } from '../events/card.js';

/** Return the keys of entries and turns that have ended, except the actions of a running turn. */
export function finishedKeys(
  entries: readonly LogEntry[],
  turns: readonly ITurn[]
): ReadonlySet<string> {
  const running = turns.find(({ stop_reason }) => stop_reason === '');
  const generation = entries.filter(isCard).at(-1)?.generation;
  const isRunning = (entry: LogEntry) =>
    isCard(entry) &&
    (isPending(entry) ||
      entry.confirmation !== null ||
      (running !== undefined &&
        entry.generation === generation &&
        entry.id >= running.first_event));
  return new Set(
    [
      ...entries.filter(entry => !isRunning(entry)),
      ...turns.filter(turn => turn !== running)
    ].map(({ key }) => key)
  );
}

/** Return the items that are not hidden; the same array if none is. */
export function withoutKeys<T extends { readonly key: string }>(
  items: readonly T[],
  hidden: ReadonlySet<string>
): readonly T[] {
  return items.some(({ key }) => hidden.has(key))
    ? items.filter(({ key }) => !hidden.has(key))
    : items;
}
