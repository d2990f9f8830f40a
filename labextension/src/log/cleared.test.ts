import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readTurn } from '../agent/turn.js';
import { action, card, observation, UNDECIDED } from '../testing.js';
import { finishedKeys, withoutKeys } from './cleared.js';

const turn = (began: number, firstEvent: number, stopReason: string) =>
  readTurn({
    agent: 'claude',
    began,
    first_event: firstEvent,
    stop_reason: stopReason
  })!;

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
  const turns = [turn(1, 0, 'end_turn'), turn(2, 4, '')];
  const finished = finishedKeys(entries, turns);
  assert.deepEqual([...finished], ['g/1', 'claude/1']);
  assert.deepEqual(withoutKeys(entries, finished), [entries[1]]);
  assert.equal(withoutKeys(entries, new Set()), entries);
});
