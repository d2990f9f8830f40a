import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation, translateAsIs } from '../testing.js';
import { editLabel } from './edit.js';

translateAsIs();

const of = (args: Record<string, unknown>, diff = '') =>
  editLabel(
    card(action(0, 'edit', args), observation(1, 0, 'edit', '', { diff }))
  );

describe('editLabel', () => {
  it('says what was done to a file', () => {
    assert.equal(of({ command: 'str_replace' }), 'Edited');
    assert.equal(of({ command: 'create' }), 'Created');
    assert.equal(of({ command: 'brand_new' }), 'brand_new');
    assert.equal(of({ command: 7 }), '');
  });

  it('counts the cells of a notebook from 1', () => {
    const edit = { command: 'notebook_edit', edit_mode: 'replace', cell: 3 };
    assert.equal(of({ ...edit, new_str: 'df = 1' }), 'Edited cell 4 (df = 1)');
    assert.equal(of({ ...edit, cell: -1, new_str: '' }), 'Edited a cell');
    assert.equal(of({ ...edit, edit_mode: 'delete' }), 'Deleted cell 4');
    assert.equal(of({ ...edit, edit_mode: 'move' }), 'Moved cell 4');
    assert.equal(
      of({ ...edit, edit_mode: 'insert', new_str: 'a\nb' }),
      'Inserted a cell (a…)'
    );
  });

  it('finds a cell by its id in the diff', () => {
    const edit = { command: 'str_replace', cell: 'b', new_str: 'x'.repeat(40) };
    const diff = ' # %% [0] code id=a\n # %% [1] code id=b\n-y\n+x\n';
    assert.equal(of(edit, diff), `Edited cell 2 (${'x'.repeat(30)}…)`);
    assert.equal(
      of({ ...edit, cell: 'c', new_str: 'x' }, diff),
      'Edited a cell (x)'
    );
  });
});
