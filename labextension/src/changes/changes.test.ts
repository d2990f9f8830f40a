import assert from 'node:assert/strict';
import { test } from 'node:test';

import { below } from '../log/summary.js';
import type {
  ICellChange,
  IFileChange,
  IFileContents
} from '../control/operations.js';
import { contentsOf, contentsPath, withUndone } from './changes.js';

const FILE: IFileChange = {
  path: '/w/a.py',
  kind: 'changed',
  moved_from: null,
  added: 2,
  removed: 0,
  binary_size: null,
  runs_when: null,
  by_others: false,
  undoable: true,
  redoable: false
};

const CELL: ICellChange = {
  kind: 'changed',
  id: null,
  cell_type: 'code',
  old_index: null,
  new_index: null,
  old_source: '',
  new_source: '',
  old_outputs: '',
  new_outputs: '',
  old_metadata: '',
  new_metadata: ''
};

function contents(fields: Partial<IFileContents>) {
  const empty = { old: null, new: null, cells: [], language: '', reason: null };
  return contentsOf({ ...empty, ...fields }, FILE);
}

test('a file has one comparison, in the language of its name', () => {
  const [only] = contents({ old: 'a', new: 'b' });
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
  const cells: ICellChange[] = [
    {
      ...CELL,
      kind: 'created',
      cell_type: 'markdown',
      new_index: 0,
      new_source: 'x'
    },
    { ...CELL, kind: 'deleted', old_index: 4, old_source: 'y' }
  ];
  const compared = contents({ cells, language: 'julia' });
  assert.ok(Array.isArray(compared));
  assert.deepEqual(
    compared.map(({ cell, language }) => [cell, language]),
    [
      [1, 'markdown'],
      [5, 'julia']
    ]
  );
});

test('outputs and metadata of a cell are compared where they differ', () => {
  const cell = {
    ...CELL,
    new_index: 1,
    old_source: 'x',
    new_source: 'x',
    old_outputs: '1',
    new_outputs: '2',
    new_metadata: '{}'
  };
  const compared = contents({ cells: [cell], language: 'julia' });
  assert.ok(Array.isArray(compared));
  assert.deepEqual(
    compared.map(({ part, language, old }) => [part, language, old]),
    [
      ['outputs', 'text', '1'],
      ['metadata', 'json', '']
    ]
  );
});

test('a file without a comparison has a reason', () => {
  assert.equal(contents({ reason: 'binary' }), 'binary');
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
