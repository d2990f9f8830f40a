import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readDeliveries } from './deliveries.js';

test('pending, failed and superseded deliveries are distinguished', () => {
  const dead = { id: 'a', path: 'f', method: 'POST', size: 3, state: 'dead' };
  const reply = {
    has_webhook: true,
    total: 700,
    deliveries: [
      { ...dead, attempts: 2, reason: 'HTTP status 403', superseded: false },
      { ...dead, superseded: true },
      { ...dead, state: 'waiting', due: '2026-01-01T00:00:00+00:00' },
      7
    ]
  };
  const { hasWebhook, total, deliveries } = readDeliveries(reply);
  assert.deepEqual([hasWebhook, total], [true, 700]);
  assert.deepEqual(
    deliveries.map(({ state, attempts, reason }) => [state, attempts, reason]),
    [
      ['dead', 2, 'HTTP status 403'],
      ['superseded', 0, ''],
      ['waiting', 0, '']
    ]
  );
  assert.throws(() => readDeliveries({ deliveries: null }), /unexpected/);
});
