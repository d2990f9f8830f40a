import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { proposed, readCheckpoints, readPlan } from './checkpoints.js';

describe('checkpoints', () => {
  it('are listed with the newest first', () => {
    const { entries, problem } = readCheckpoints({
      problem: 'no git',
      checkpoints: [
        {
          id: 1,
          time: 5,
          kind: 'turn',
          label: 'one',
          who: 'claude',
          files: ['a', 'b'],
          cells: 3,
          variables: ['df']
        },
        { id: 'x' },
        { id: 2, time: 6, kind: 'rewind', label: 'two', who: 'user' }
      ]
    });
    assert.deepEqual(
      entries.map(({ id }) => id),
      [2, 1]
    );
    assert.deepEqual(
      entries.map(({ counts }) => counts),
      [
        { files: 0, cells: 0, variables: 0 },
        { files: 2, cells: 3, variables: 1 }
      ]
    );
    assert.equal(problem, 'no git');
    assert.equal(proposed(entries)?.id, 1);
    assert.equal(proposed([]), undefined);
  });

  it('reject invalid responses', () => {
    assert.throws(() => readCheckpoints([]), /unexpected/);
    assert.throws(() => readPlan({}), /unexpected/);
  });
});

describe('a plan', () => {
  it('has changes, unchanged paths and notes', () => {
    const plan = readPlan({
      changes: [{ path: 'a', kind: 'delete' }],
      kept: { b: 'changed by others' },
      variables: [
        { name: 'df', outcome: 'restored', type: 'DataFrame', size: 8 }
      ],
      notes: ['The shell stays.']
    });
    assert.deepEqual(plan, {
      changes: [{ path: 'a', kind: 'delete' }],
      kept: [['b', 'changed by others']],
      variables: [
        {
          name: 'df',
          outcome: 'restored',
          type: 'DataFrame',
          size: 8,
          reason: ''
        }
      ],
      notes: ['The shell stays.']
    });
  });
});
