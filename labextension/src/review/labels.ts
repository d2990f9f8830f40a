import { trans } from '../translation.js';
import type { Hunk, ReviewedText } from './text.js';

/** Longest part of changed lines that is announced. */
const MAX_LINES_CHARS = 200;

/** Say which lines a hunk has instead of which. */
export function hunkLabel(text: ReviewedText, hunk: Hunk): string {
  const before = text.before(hunk);
  const now = text.after(hunk);
  return before === null
    ? trans.__('Added: %1', excerpt(now))
    : now === null
      ? trans.__('Removed: %1', excerpt(before))
      : trans.__('%1. Before: %2', excerpt(now), excerpt(before));
}

/** Say at which of the changes the person is. */
export function stopLabel(number: number, count: number, what: string): string {
  return trans.__('Change %1 of %2. %3', number, count, what);
}

function excerpt(lines: string | null): string {
  const text = (lines ?? '').trim();
  return text === ''
    ? trans.__('empty line')
    : text.length > MAX_LINES_CHARS
      ? `${text.slice(0, MAX_LINES_CHARS - 1)}…`
      : text;
}
