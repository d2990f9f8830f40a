import assert from 'node:assert/strict';
import { test } from 'node:test';

import { below } from '../log/summary.js';
import {
  contentsPath,
  readChanges,
  readContents,
  withUndone
} from './changes.js';

const FILE = readChanges({
  workspace: '/w',
  files: [{ path: '/w/a.py', kind: 'changed', added: 2, undoable: true }]
}).files[0]!;

test('invalid changes are rejected', () => {
  assert.throws(() => readChanges({ files: 1 }), /unexpected/);
  assert.throws(() => readContents(null, FILE), /unexpected/);
});

test('a file that runs has the act of the person', () => {
  const files = [
    { path: '/w/Makefile', runs_when: 'you run make' },
    { path: '/w/a.txt', runs_when: null }
  ];
  const { files: read } = readChanges({ workspace: '/w', files });
  assert.deepEqual(
    read.map(({ runsWhen }) => runsWhen),
    ['you run make', '']
  );
});

test('a file has one comparison, in the language of its name', () => {
  const [only] = readContents({ old: 'a', new: 'b' }, FILE);
  assert.deepEqual(only, {
    key: '/w/a.py',
    kind: 'changed',
    cell: null,
    part: 'source',
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

test('outputs and metadata of a cell are compared where they differ', () => {
  const cell = {
    kind: 'changed',
    cell_type: 'code',
    new_index: 1,
    old_source: 'x',
    new_source: 'x',
    old_outputs: '1',
    new_outputs: '2',
    new_metadata: '{}'
  };
  const found = readContents({ cells: [cell], language: 'julia' }, FILE);
  assert.ok(Array.isArray(found));
  assert.deepEqual(
    found.map(({ part, language, old }) => [part, language, old]),
    [
      ['outputs', 'text', '1'],
      ['metadata', 'json', '']
    ]
  );
});

test('a file without a comparison has a reason', () => {
  assert.equal(readContents({ reason: 'binary' }, FILE), 'binary');
  assert.equal(readContents({ reason: 'too_long' }, FILE), 'long');
});

test('paths are relative to the workspace', () => {
  assert.equal(below('/w/b/a.py', '/w'), 'b/a.py');
  assert.equal(below('/a.py', '/'), 'a.py');
  assert.equal(below('/wide/a.py', '/w'), '/wide/a.py');
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
