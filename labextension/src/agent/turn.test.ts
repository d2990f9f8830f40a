import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs } from '../testing.js';
import {
  costsLabel,
  hasSucceeded,
  priceLabel,
  readConversation,
  readTurn,
  tokensLabel,
  totalCosts,
  updatedTurns
} from './turn.js';

translateAsIs();

const turn = (fields: Record<string, unknown>) =>
  readTurn({ agent: 'claude', began: 1, ...fields })!;

test('a turn is read even if fields are missing', () => {
  const step = { title: 'ls', status: 'completed', output: 'a' };
  const read = turn({ prompt: 'x', parts: ['said', step, 7] });
  assert.equal(read.key, 'claude/1');
  assert.deepEqual(read.parts, [
    'said',
    { title: 'ls', status: 'completed', arguments: '', output: 'a', files: [] },
    { title: '', status: '', arguments: '', output: '', files: [] }
  ]);
  assert.deepEqual([read.cost, read.stopReason], [null, '']);
  assert.equal(readTurn({ agent: 'claude' }), null);
});

test('files that run are read with the act of the person', () => {
  const { runs } = turn({ runs_when: { '/w/Makefile': 'you run make' } });
  assert.deepEqual(runs, [{ path: '/w/Makefile', when: 'you run make' }]);
  assert.deepEqual(turn({}).runs, []);
});

test('an invalid conversation is rejected', () => {
  assert.throws(() => readConversation({ agents: [] }), /unexpected/);
  const empty = readConversation({ agents: [], turns: [7], current: null });
  assert.deepEqual(empty, { agents: [], current: '', turns: [] });
});

test('an updated turn replaces its earlier version', () => {
  const first = turn({ parts: [] });
  const second = turn({ began: 2 });
  const later = turn({ parts: ['more'] });
  assert.deepEqual(updatedTurns([first], second), [first, second]);
  assert.deepEqual(updatedTurns([first, second], later), [later, second]);
});

test('costs are added up by currency', () => {
  const turns = [
    turn({ cost: 0.25, currency: 'USD' }),
    turn({ cost: 0.5, currency: 'USD' }),
    turn({})
  ];
  assert.deepEqual([...totalCosts(turns)], [['USD', 0.75]]);
  assert.match(priceLabel(0.75, 'USD'), /0\.75/);
  assert.match(priceLabel(0.0021, 'USD'), /0\.0021/);
  assert.equal(priceLabel(2, 'credits'), '2.00 credits');
});

test('what turns cost is named only if an agent reports it', () => {
  const turns = [
    turn({ cost: 0.25, currency: 'USD', usage: { total_tokens: 900 } }),
    turn({ usage: { total_tokens: 100 } })
  ];
  assert.match(costsLabel(turns), /0\.25/);
  assert.equal(tokensLabel(turns), '1K tokens');
  assert.deepEqual([costsLabel([]), tokensLabel([turn({})])], ['', '']);
});

test('a turn that was stopped or failed has not succeeded', () => {
  const reasons = ['', 'cancelled', 'failed', 'refusal', 'end_turn'];
  assert.deepEqual(
    reasons.filter(stop_reason => hasSucceeded(turn({ stop_reason }))),
    ['end_turn']
  );
});
