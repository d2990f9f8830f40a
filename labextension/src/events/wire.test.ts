import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { isAction, parseEvent, parseMessage } from './wire.js';

const RUN = {
  id: 3,
  timestamp: '2026-11-20T10:00:00.5',
  source: 'agent',
  message: 'Running command: ls',
  action: 'run',
  args: { command: 'ls' }
};

describe('parseEvent', () => {
  it('reads an action', () => {
    const event = parseEvent(RUN);
    assert.ok(event && isAction(event));
    assert.equal(event.id, 3);
    assert.equal(event.source, 'agent');
    assert.deepEqual(event.args, { command: 'ls' });
    assert.equal(event.clipped, false);
  });

  it('reads an observation', () => {
    const event = parseEvent({
      id: 4,
      cause: 3,
      observation: 'run',
      content: 'a.txt',
      extras: { hidden: false },
      clipped: true
    });
    assert.ok(event && !isAction(event));
    assert.equal(event.cause, 3);
    assert.equal(event.content, 'a.txt');
    assert.equal(event.clipped, true);
    assert.equal(event.source, null);
  });

  it('reads whether a command ran in a sandbox', () => {
    const of = (handling: unknown) => {
      const event = parseEvent({
        id: 4,
        observation: 'run',
        content: '',
        oh_jupyter: { handling }
      });
      assert.ok(event && !isAction(event));
      return event.handling?.sandboxed;
    };
    assert.equal(of({ sandboxed: true }), true);
    assert.equal(of({ sandboxed: false }), false);
    assert.equal(of({ waited_seconds: 1 }), undefined);
  });

  it('reads an outcome, which most types do not name', () => {
    const of = (observation: string, named?: unknown) => {
      const oh_jupyter = named === undefined ? {} : { outcome: named };
      const event = parseEvent({ id: 4, observation, oh_jupyter });
      assert.ok(event && !isAction(event));
      return event.outcome;
    };
    assert.equal(of('edit'), 'done');
    assert.equal(of('edit', 'failed'), 'failed');
    assert.equal(of('error'), 'failed');
    assert.equal(of('user_rejected', 'timed_out'), 'timed_out');
    assert.equal(of('edit', 'unheard of'), 'done');
  });

  it('trusts only the envelope', () => {
    const event = parseEvent({
      id: 5,
      observation: 'x',
      content: ['no text'],
      extras: 'no object',
      cause: '3',
      source: 'nobody',
      timestamp: 12
    });
    assert.deepEqual(event, {
      id: 5,
      timestamp: null,
      source: null,
      message: '',
      clipped: false,
      observation: 'x',
      outcome: 'done',
      content: '',
      extras: {},
      cause: null
    });
  });

  for (const value of [
    null,
    'run',
    [],
    {},
    { id: 1 },
    { id: '1', action: 'run' },
    { id: 1.5, action: 'run' },
    { action: 'run' }
  ]) {
    it(`refuses ${JSON.stringify(value)}`, () => {
      assert.equal(parseEvent(value), null);
    });
  }
});

describe('the options of an Action', () => {
  it("are the arguments outside OpenHands' protocol", () => {
    const event = parseEvent({
      id: 1,
      action: 'edit',
      args: { path: '/a' },
      oh_jupyter: { replace_all: true }
    });
    assert.ok(event && isAction(event));
    assert.deepEqual(event.options, { replace_all: true });
  });
});

describe('parseMessage', () => {
  it('reads the envelope', () => {
    const message = parseMessage({ generation: 'g', seq: 7, event: RUN });
    assert.equal(message?.generation, 'g');
    assert.equal(message?.seq, 7);
    assert.equal(message?.event.id, 3);
  });

  it('rejects incomplete messages', () => {
    assert.equal(parseMessage({ seq: 7, event: RUN }), null);
    assert.equal(parseMessage({ generation: 'g', event: RUN }), null);
    assert.equal(parseMessage({ generation: 'g', seq: 7 }), null);
    assert.equal(parseMessage('g'), null);
  });
});
