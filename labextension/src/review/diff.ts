import { diffIndices } from 'node-diff3';

import { FILE_ID, type IReviewCell } from './model.js';

/** Compare two states of a document, in the format of the editor's diffs. */
export function unifiedDiff(
  path: string,
  before: readonly IReviewCell[],
  after: readonly IReviewCell[]
): string {
  const [old, now] = [linesOf(before), linesOf(after)];
  const hunks = diffIndices(old, now).flatMap(
    ({ buffer1, buffer2, buffer1Content, buffer2Content }) => [
      `@@ -${range(buffer1)} +${range(buffer2)} @@`,
      ...buffer1Content.map(line => `-${line}`),
      ...buffer2Content.map(line => `+${line}`)
    ]
  );
  return [`--- ${path}`, `+++ ${path}`, ...hunks].join('\n');
}

function range([start, count]: readonly [number, number]): string {
  return count === 1 ? `${start + 1}` : `${start + Number(count > 0)},${count}`;
}

/** List the lines of a text, or of cells below their headings. */
function linesOf(cells: readonly IReviewCell[]): string[] {
  return cells.flatMap(({ id, type, source }, index) => {
    const lines = source.split('\n');
    return id === FILE_ID
      ? lines
      : [`# %% [${index}] ${type} id=${id}`, ...lines];
  });
}
