import assert from 'node:assert/strict';
import { test } from 'node:test';

import { action, card, observation, turn, UNDECIDED } from '../testing.js';
import { finishedKeys, withoutKeys } from './cleared.js';

test('what runs or waits for a decision is not finished', () => {
  const entries = [
    { key: 'start', sameKernel: true },
    card(action(1), observation(2, 1)),
    card(action(3)),
    { ...card(action(4)), confirmation: UNDECIDED }
  ];
  assert.deepEqual([...finishedKeys(entries, [])], ['start', 'g/1']);
});

test('a running turn keeps its actions', () => {
  const entries = [
    card(action(1), observation(2, 1)),
    card(action(5), observation(6, 5))
  ];
  const turns = [
    turn({ began: 1, first_event: 0, stop_reason: 'end_turn' }),
    turn({ began: 2, first_event: 4 })
  ];
  const finished = finishedKeys(entries, turns);
  assert.deepEqual([...finished], ['g/1', 'claude/1']);
  assert.deepEqual(withoutKeys(entries, finished), [entries[1]]);
  assert.equal(withoutKeys(entries, new Set()), entries);
});
