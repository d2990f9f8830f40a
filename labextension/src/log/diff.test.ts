import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { diffLines } from './diff.js';

const kinds = (diff: string) => diffLines(diff).map(({ kind }) => kind);

describe('diffLines', () => {
  it('uses the line counts of hunks, not only the first characters', () => {
    const diff = [
      '--- a.sql',
      '+++ a.sql',
      '@@ -1,2 +1,3 @@',
      ' select 1',
      '--- a comment',
      '+++i',
      '+@@ -1 +1 @@',
      '@@ -9 +9 @@',
      '-old',
      '\\ No newline at end of file',
      '+new',
      ''
    ].join('\n');
    assert.deepEqual(kinds(diff), [
      'header',
      'header',
      'place',
      'context',
      'removed',
      'added',
      'added',
      'place',
      'removed',
      'context',
      'added'
    ]);
  });

  it('makes paths in headers relative to the workspace', () => {
    const diff =
      '--- /home/ada/a.sql\n+++ /home/ada/a.sql\n@@ -1 +1 @@\n--- /home/ada\n+b';
    assert.deepEqual(
      diffLines(diff, '/home/ada').map(({ text }) => text),
      ['--- a.sql', '+++ a.sql', '@@ -1 +1 @@', '--- /home/ada', '+b']
    );
  });

  it('treats a blank line of a hunk as context', () => {
    assert.deepEqual(kinds('@@ -1,2 +1,3 @@\n a\n\n+b\n'), [
      'place',
      'context',
      'context',
      'added'
    ]);
  });
});
