import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs, turn } from '../testing.js';
import {
  costsLabel,
  hasSucceeded,
  priceLabel,
  tokensLabel,
  totalCosts,
  updatedTurns
} from './turn.js';

translateAsIs();

test('agent and start time identify a turn', () => {
  assert.equal(turn({ agent: 'claude', began: 7 }).key, 'claude/7');
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
