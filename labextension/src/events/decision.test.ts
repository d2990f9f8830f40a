import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { answered, parseDecision, readDecision } from './decision.js';
import { NotLoadedError, RuntimeGoneError } from './errors.js';

describe('readDecision', () => {
  it('tells what became of a decision', () => {
    readDecision({ status: 'ok' });
    const failed = (ename: string) => () =>
      readDecision({ status: 'error', ename, evalue: 'why' });
    assert.throws(failed('ConfirmationError'), NotLoadedError);
    assert.throws(failed('GenerationChangedError'), RuntimeGoneError);
    assert.throws(failed('WireError'), /^Error: why$/);
    assert.throws(() => readDecision(null), /unknown form/);
  });
});

describe('parseDecision', () => {
  it('takes nothing for granted', () => {
    const decision = { generation: 'g', id: 3 };
    assert.deepEqual(parseDecision({ ...decision, approved: true }), decision);
    for (const other of [null, [], {}, { generation: 'g', id: '3' }]) {
      assert.equal(parseDecision(other), null);
    }
  });
});

describe('answered', () => {
  it('passes an answer on, and ends the wait where there is none', async () => {
    assert.equal(await answered(Promise.resolve(1)), 1);
    await assert.rejects(answered(new Promise(() => {}), 0), /does not answer/);
  });
});
