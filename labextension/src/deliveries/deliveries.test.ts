import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { IDelivery } from '../control/operations.js';
import { stateOf } from './deliveries.js';

const DEAD: IDelivery = {
  id: 'a',
  method: 'POST',
  path: 'f',
  size: 3,
  state: 'dead',
  attempts: 2,
  reason: 'HTTP status 403',
  recorded: '2026-01-01T00:00:00+00:00',
  due: null,
  superseded: false
};

test('pending, failed and superseded deliveries are distinguished', () => {
  assert.equal(stateOf(DEAD), 'dead');
  assert.equal(stateOf({ ...DEAD, superseded: true }), 'superseded');
  assert.equal(stateOf({ ...DEAD, state: 'waiting' }), 'waiting');
});
