/** Text under review: its baseline, and how the current text aligns with it. */
import { Chunk } from '@codemirror/merge';
import { ChangeSet, Text, type ChangeSpec } from '@codemirror/state';

import { textEdits, type ITextEdit } from '../documents/text.js';

/** Options of the comparison; a comparison that would take longer is less exact. */
export const DIFF_CONFIG = { scanLimit: 2000, timeout: 200 };

/** Lines that differ: from where to where in the baseline (A) and in the current text (B). */
export type Hunk = Pick<
  Chunk,
  'fromA' | 'toA' | 'endA' | 'fromB' | 'toB' | 'endB'
>;

/** Part of a change to a shared text, as Yjs describes it. */
export interface IDelta {
  readonly retain?: number;
  readonly insert?: unknown;
  readonly delete?: number;
}

/** Convert a text for CodeMirror without changing its line ends. */
export function document(text: string): Text {
  return Text.of(text.split('\n'));
}

/** Convert a change of a shared text. */
export function changesOf(delta: readonly IDelta[], length: number): ChangeSet {
  const changes: ChangeSpec[] = [];
  let at = 0;
  for (const { retain = 0, insert, delete: deleted = 0 } of delta) {
    at += retain;
    if (typeof insert === 'string') {
      changes.push({ from: at, insert: document(insert) });
    } else if (deleted > 0) {
      changes.push({ from: at, to: at + deleted });
      at += deleted;
    }
  }
  return ChangeSet.of(changes, length);
}

/** Return the changes that turn one text into another. */
export function changesBetween(from: string, to: string): ChangeSet {
  const changes = textEdits(from, to).map(({ start, end, value }) => ({
    from: start,
    to: end,
    insert: document(value)
  }));
  return ChangeSet.of(changes, from.length);
}

/**
 * Text of which an agent changed parts.
 *
 * The baseline is the text without the agent's changes: what the person types becomes part of it.
 */
export class ReviewedText {
  private constructor(
    readonly base: string,
    readonly now: string,
    /** Changes from the current text back to the baseline. */
    private readonly _back: ChangeSet
  ) {}

  static between(base: string, now: string): ReviewedText {
    return new ReviewedText(base, now, changesBetween(now, base));
  }

  get isChanged(): boolean {
    return this.base !== this.now;
  }

  /** Record a change by an agent, which the baseline lacks. */
  changed(change: ChangeSet): ReviewedText {
    const before = document(this.now);
    const back = change.invert(before).compose(this._back);
    const now = change.apply(before).toString();
    return new ReviewedText(this.base, now, back);
  }

  /** Record a change by the person, which becomes part of the baseline. */
  typed(change: ChangeSet): ReviewedText {
    const base = change.map(this._back).apply(document(this.base)).toString();
    const now = change.apply(document(this.now)).toString();
    return new ReviewedText(base, now, this._back.map(change, true));
  }

  /** Record an undo or redo: of an agent's change if the text then resembles the baseline more. */
  undone(change: ChangeSet): ReviewedText {
    const ofAgent = this.changed(change);
    const ofPerson = this.typed(change);
    return ofAgent._distance < ofPerson._distance ? ofAgent : ofPerson;
  }

  /** Differing lines. */
  get hunks(): readonly Hunk[] {
    this._hunks ??= this.isChanged
      ? Chunk.build(document(this.base), document(this.now), DIFF_CONFIG)
      : [];
    return this._hunks;
  }

  /** Return the lines of a hunk in the baseline; null if there are none. */
  before(hunk: Hunk): string | null {
    return linesOf(this.base, hunk.fromA, hunk.toA);
  }

  /** Return the current lines of a hunk; null if there are none. */
  after(hunk: Hunk): string | null {
    return linesOf(this.now, hunk.fromB, hunk.toB);
  }

  /** Make the current lines of a hunk those of the baseline. */
  kept(hunk: Hunk): ReviewedText {
    const edit = replacement(this.base, hunk.fromA, hunk.toA, this.after(hunk));
    return ReviewedText.between(applied(this.base, edit), this.now);
  }

  /** Return the edit of the current text that restores the lines of a hunk. */
  undoing(hunk: Hunk): ITextEdit {
    return replacement(this.now, hunk.fromB, hunk.toB, this.before(hunk));
  }

  private _hunks: readonly Hunk[] | undefined;

  private get _distance(): number {
    return textEdits(this.base, this.now).reduce(
      (sum, { start, end, value }) => sum + end - start + value.length,
      0
    );
  }
}

/** Return lines without the last line end; null if there are none. */
function linesOf(text: string, from: number, to: number): string | null {
  return from === to ? null : text.slice(from, to - 1);
}

/** Replace lines; the end of a hunk may be one past the end of the text. */
function replacement(
  text: string,
  from: number,
  to: number,
  lines: string | null
): ITextEdit {
  const end = Math.min(text.length, to);
  const hasNext = to <= text.length;
  const value = lines === null ? '' : hasNext ? `${lines}\n` : lines;
  return { start: Math.min(from, end), end, value };
}

/** Apply an edit to a text. */
export function applied(
  text: string,
  { start, end, value }: ITextEdit
): string {
  return text.slice(0, start) + value + text.slice(end);
}
