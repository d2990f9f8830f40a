import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { checkReply, parseDecision, withTimeout } from './decision.js';
import { NotLoadedError, RuntimeGoneError } from './errors.js';

describe('checkReply', () => {
  it('raises the error of a failed reply', () => {
    checkReply({ status: 'ok' });
    const failed = (ename: string) => () =>
      checkReply({ status: 'error', ename, evalue: 'why' });
    assert.throws(failed('ConfirmationError'), NotLoadedError);
    assert.throws(failed('GenerationChangedError'), RuntimeGoneError);
    assert.throws(failed('WireError'), /^Error: why$/);
    assert.throws(() => checkReply(null), /unexpected/);
  });
});

describe('parseDecision', () => {
  it('rejects invalid content', () => {
    const decision = { generation: 'g', id: 3 };
    assert.deepEqual(parseDecision({ ...decision, approved: true }), decision);
    for (const other of [null, [], {}, { generation: 'g', id: '3' }]) {
      assert.equal(parseDecision(other), null);
    }
  });
});

describe('withTimeout', () => {
  it('passes a reply on, and rejects without one', async () => {
    assert.equal(await withTimeout(Promise.resolve(1)), 1);
    await assert.rejects(
      withTimeout(new Promise(() => {}), 0),
      /does not respond/
    );
  });
});
