import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ICheckpoint } from '../control/operations.js';
import { proposed } from './checkpoints.js';

const TURN: ICheckpoint = {
  id: 1,
  time: 5,
  kind: 'turn',
  label: 'one',
  who: 'claude',
  ended: true,
  files: ['a', 'b'],
  cells: 3,
  variables: ['df']
};

test('the last turn is proposed, or else the last checkpoint', () => {
  const rewind: ICheckpoint = { ...TURN, id: 2, kind: 'rewind' };
  assert.equal(proposed([rewind, TURN]), TURN);
  assert.equal(proposed([rewind]), rewind);
  assert.equal(proposed([]), undefined);
});
