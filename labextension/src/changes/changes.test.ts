import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  contentsPath,
  readChanges,
  readContents,
  relativeTo,
  withUndone
} from './changes.js';

const FILE = readChanges({
  workspace: '/w',
  files: [{ path: '/w/a.py', kind: 'changed', added: 2, undoable: true }]
}).files[0]!;

test('changes of an unknown form are refused', () => {
  assert.throws(() => readChanges({ files: 1 }), /unknown form/);
  assert.throws(() => readContents(null, FILE), /unknown form/);
});

test('a file has one comparison, in the language of its name', () => {
  const [only] = readContents({ old: 'a', new: 'b' }, FILE);
  assert.deepEqual(only, {
    key: '/w/a.py',
    kind: 'changed',
    cell: null,
    language: '/w/a.py',
    old: 'a',
    new: 'b'
  });
});

test('a notebook has one for each cell, where it is now or was', () => {
  const cells = [
    { kind: 'created', cell_type: 'markdown', new_index: 0, new_source: 'x' },
    { kind: 'deleted', cell_type: 'code', old_index: 4, old_source: 'y' }
  ];
  const found = readContents({ cells, language: 'julia' }, FILE);
  assert.ok(Array.isArray(found));
  assert.deepEqual(
    found.map(({ cell, language }) => [cell, language]),
    [
      [1, 'markdown'],
      [5, 'julia']
    ]
  );
});

test('what cannot be compared says why', () => {
  assert.equal(readContents({ reason: 'binary' }, FILE), 'binary');
  assert.equal(readContents({ reason: 'too_long' }, FILE), 'long');
});

test('paths are told below the workspace', () => {
  assert.equal(relativeTo('/w', '/w/b/a.py'), 'b/a.py');
  assert.equal(relativeTo('/', '/a.py'), 'a.py');
  assert.equal(relativeTo('/w', '/wide/a.py'), '/wide/a.py');
});

test('a file that was undone stays in the list to be redone', () => {
  const [kept] = withUndone([FILE], [], new Set([FILE.path]));
  assert.deepEqual(
    [kept?.redoable, kept?.undoable, kept?.added],
    [true, false, 0]
  );
  assert.deepEqual(withUndone([FILE], [], new Set()), []);
  assert.deepEqual(withUndone([FILE], [FILE], new Set([FILE.path])), [FILE]);
});

test('Jupyter opens what is below its root, or beside the notebook', () => {
  const open = (path: string, root: string) =>
    contentsPath(path, root, '/h/w', 'deep/n.ipynb');
  assert.equal(open('/h/w/a.py', '/h'), 'w/a.py');
  assert.equal(open('/h/w/a.py', '~'), 'deep/a.py');
  assert.equal(open('/etc/a.py', '~'), null);
});
