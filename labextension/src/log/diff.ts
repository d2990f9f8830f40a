import { below } from './summary.js';

/** Kind of a line in a unified diff. */
export type DiffLineKind = 'header' | 'place' | 'added' | 'removed' | 'context';

const KIND_OF_SIGN: Readonly<Record<string, DiffLineKind>> = {
  '-': 'removed',
  '+': 'added'
};

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** Classify the lines of a unified diff, and make paths in headers relative to `root`. */
export function diffLines(
  diff: string,
  root = ''
): readonly { kind: DiffLineKind; text: string }[] {
  // The line counts of hunks distinguish changed lines from headers.
  let removed = 0;
  let added = 0;
  return diff
    .replace(/\n$/, '')
    .split('\n')
    .map(text => {
      const match = HUNK.exec(text);
      if (removed <= 0 && added <= 0) {
        if (match) {
          [removed, added] = [Number(match[1] ?? 1), Number(match[2] ?? 1)];
          return { kind: 'place', text };
        }
        return text.startsWith('\\')
          ? { kind: 'context', text }
          : { kind: 'header', text: header(text, root) };
      }
      const sign = text.charAt(0);
      removed -= sign === '+' || sign === '\\' ? 0 : 1;
      added -= sign === '-' || sign === '\\' ? 0 : 1;
      return { kind: KIND_OF_SIGN[sign] ?? 'context', text };
    });
}

function header(line: string, root: string): string {
  const [sign, path] = [line.slice(0, 4), line.slice(4)];
  return sign === '--- ' || sign === '+++ ' ? sign + below(path, root) : line;
}
