import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation, translateAsIs } from '../testing.js';
import { editLabel } from './edit.js';

translateAsIs();

/** Label of an edit whose cell and mode are outside OpenHands' protocol. */
const of = (
  args: Record<string, unknown>,
  options: Record<string, unknown> = {},
  diff = ''
) =>
  editLabel(
    card(
      action(0, 'edit', args, { options }),
      observation(1, 0, 'edit', '', { diff })
    )
  );

describe('editLabel', () => {
  it('says what was done to a file', () => {
    assert.equal(of({ command: 'str_replace' }), 'Edited');
    assert.equal(of({ command: 'create' }), 'Created');
    assert.equal(of({ command: 'brand_new' }), 'brand_new');
    assert.equal(of({ command: 7 }), '');
  });

  it('counts the cells of a notebook from 1', () => {
    const edit = (new_str: string, options: Record<string, unknown>) =>
      of({ command: 'notebook_edit', new_str }, { cell: 3, ...options });
    assert.equal(edit('df = 1', {}), 'Edited cell 4 (df = 1)');
    assert.equal(edit('', { cell: -1 }), 'Edited a cell');
    assert.equal(edit('', { edit_mode: 'delete' }), 'Deleted cell 4');
    assert.equal(edit('', { edit_mode: 'move' }), 'Moved cell 4');
    const inserted = edit('a\nb', { edit_mode: 'insert' });
    assert.equal(inserted, 'Inserted a cell (a…)');
  });

  it('finds a cell by its id in the diff', () => {
    const diff = ' # %% [0] code id=a\n # %% [1] code id=b\n-y\n+x\n';
    const edit = (cell: string, new_str: string) =>
      of({ command: 'str_replace', new_str }, { cell }, diff);
    assert.equal(
      edit('b', 'x'.repeat(40)),
      `Edited cell 2 (${'x'.repeat(30)}…)`
    );
    assert.equal(edit('c', 'x'), 'Edited a cell (x)');
  });
});
