/** Three-way line merges of text, and minimal edits. */
import { diff3Merge, diffIndices } from 'node-diff3';

/** Replace the characters from `start` to before `end` by `value`. */
export interface ITextEdit {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/** Lines that both sides changed differently. */
export interface ITextConflict {
  readonly ours: string;
  readonly theirs: string;
}

/** Merged text, or a conflict. */
export type MergePiece = string | ITextConflict;

/** Split a text into lines with their newlines. */
function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Merge two versions of a base; adjacent changes conflict. */
export function mergeText(
  base: string,
  ours: string,
  theirs: string
): readonly MergePiece[] {
  if (ours === base || ours === theirs) {
    return [theirs];
  }
  if (theirs === base) {
    return [ours];
  }
  const regions = diff3Merge(lines(ours), lines(base), lines(theirs), {
    excludeFalseConflicts: true
  });
  return regions.map(({ ok, conflict }) =>
    conflict
      ? { ours: conflict.a.join(''), theirs: conflict.b.join('') }
      : (ok ?? []).join('')
  );
}

/** Join the merged text; null with conflicts. */
export function mergedText(pieces: readonly MergePiece[]): string | null {
  return pieces.every(piece => typeof piece === 'string')
    ? pieces.join('')
    : null;
}

/** Join the merged text, with conflicts marked like git. */
export function markedText(
  pieces: readonly MergePiece[],
  ourName: string,
  theirName: string
): string {
  return pieces
    .map(piece =>
      typeof piece === 'string'
        ? piece
        : `<<<<<<< ${ourName}\n${terminated(piece.ours)}=======\n` +
          `${terminated(piece.theirs)}>>>>>>> ${theirName}\n`
    )
    .join('');
}

function terminated(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

/** Return the minimal line edits between two texts, last one first. */
export function textEdits(from: string, to: string): readonly ITextEdit[] {
  const before = lines(from);
  const offsets = [0];
  for (const line of before) {
    offsets.push(offsets.at(-1)! + line.length);
  }
  return diffIndices(before, lines(to))
    .map(({ buffer1: [first, count], buffer2Content }) =>
      trimmed(
        from.slice(offsets[first], offsets[first + count]),
        buffer2Content.join(''),
        offsets[first]!
      )
    )
    .reverse();
}

/** Trim the common start and end of an edit. */
function trimmed(from: string, to: string, offset: number): ITextEdit {
  const shorter = Math.min(from.length, to.length);
  let head = 0;
  while (head < shorter && from[head] === to[head]) {
    head += 1;
  }
  let tail = 0;
  while (
    tail < shorter - head &&
    from[from.length - 1 - tail] === to[to.length - 1 - tail]
  ) {
    tail += 1;
  }
  return {
    start: offset + head,
    end: offset + from.length - tail,
    value: to.slice(head, to.length - tail)
  };
}
