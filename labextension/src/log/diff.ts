import { below } from './summary.js';

/** What a line of a unified diff is. */
export type DiffLineKind = 'header' | 'place' | 'added' | 'removed' | 'context';

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/**
 * Tell what each line of a unified diff is.
 *
 * A hunk says how many lines it has, so that what it removes or adds is not taken
 * for a header, however it begins. Paths in headers are given as seen from `root`.
 */
export function diffLines(
  diff: string,
  root = ''
): readonly { kind: DiffLineKind; text: string }[] {
  let removed = 0;
  let added = 0;
  return diff
    .replace(/\n$/, '')
    .split('\n')
    .map(text => {
      const hunk = HUNK.exec(text);
      if (removed <= 0 && added <= 0) {
        if (hunk) {
          [removed, added] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
          return { kind: 'place', text };
        }
        return text.startsWith('\\')
          ? { kind: 'context', text }
          : { kind: 'header', text: header(text, root) };
      }
      switch (text.charAt(0)) {
        case '-':
          removed -= 1;
          return { kind: 'removed', text };
        case '+':
          added -= 1;
          return { kind: 'added', text };
        case '\\':
          return { kind: 'context', text };
        default:
          removed -= 1;
          added -= 1;
          return { kind: 'context', text };
      }
    });
}

function header(line: string, root: string): string {
  const [sign, path] = [line.slice(0, 4), line.slice(4)];
  return sign === '--- ' || sign === '+++ ' ? sign + below(path, root) : line;
}
