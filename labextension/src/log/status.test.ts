import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { outcomeOf, type IHandling } from '../events/wire.js';
import { action, card, observation, UNDECIDED } from '../testing.js';
import { seconds, status, withoutAnsi } from './status.js';

const ran = (metadata: object) =>
  status(card(action(0), observation(1, 0, 'run', '', { metadata })));

const ended = (type: string, named?: string) => {
  const outcome = outcomeOf(type, named);
  const end = observation(1, 0, type, '', {}, { outcome });
  return status(card(action(0), end)).outcome;
};

describe('status', () => {
  it('distinguishes running, waiting and lost actions', () => {
    const asked = action(0, 'run', {
      confirmation_state: 'awaiting_confirmation'
    });
    assert.equal(status(card(action(0))).outcome, 'running');
    const waiting = { ...card(asked), confirmation: UNDECIDED };
    assert.equal(status(waiting).outcome, 'waiting');
    // Its event stays as it was; that it waits no more, only the list tells.
    assert.equal(status(card(asked)).outcome, 'running');
    const pending = observation(1, 0, 'null');
    assert.equal(status(card(asked, pending)).outcome, 'unconfirmed');
    assert.equal(status(card(action(0), null, true)).outcome, 'lost');
  });

  it('expects no observation of a thought', () => {
    assert.equal(status(card(action(0, 'think'))).outcome, 'none');
    assert.equal(status(card(action(0, 'brand_new'))).outcome, 'none');
  });

  it('reads the exit code of a command', () => {
    assert.deepEqual(ran({ exit_code: 0 }), { outcome: 'ok', exitCode: 0 });
    assert.deepEqual(ran({ exit_code: 2 }), { outcome: 'failed', exitCode: 2 });
    assert.deepEqual(ran({ exit_code: -1 }), { outcome: 'unfinished' });
    assert.deepEqual(ran({}), { outcome: 'none' });
  });

  it('shows the outcome of an observation', () => {
    assert.equal(ended('error'), 'failed');
    assert.equal(ended('user_rejected'), 'rejected');
    assert.equal(ended('edit', 'failed'), 'failed');
    assert.equal(ended('edit'), 'ok');
    assert.equal(ended('browse', 'timed_out'), 'failed');
    assert.equal(ended('run_ipython', 'failed'), 'failed');
    assert.equal(ended('user_rejected', 'timed_out'), 'rejected');
    assert.equal(ended('read', 'of another version'), 'ok');
  });

  it('takes no text for a failure', () => {
    const read = observation(1, 0, 'read', 'ERROR:\na line of a log');
    assert.equal(status(card(action(0), read)).outcome, 'ok');
  });
});

const HANDLING: IHandling = {
  decidedBy: '',
  waitedSeconds: 0,
  queuedSeconds: 0,
  neverStarted: false
};

describe('seconds', () => {
  const at = (start: string | null, end: string | null) =>
    seconds(
      card(
        action(0, 'run', {}, { timestamp: start }),
        observation(1, 0, 'run', '', {}, { timestamp: end })
      )
    );

  it('counts from the action to its observation', () => {
    assert.equal(at('2026-01-01T10:00:00', '2026-01-01T10:00:01.500'), 1.5);
  });

  it('is null without valid timestamps', () => {
    assert.equal(at(null, '2026-01-01T10:00:01'), null);
    assert.equal(at('2026-01-01T10:00:01', '2026-01-01T10:00:00'), null);
    assert.equal(seconds(card(action(0))), null);
  });

  const handled = (type: string, fields: Partial<IHandling>) => {
    const handling = { ...HANDLING, ...fields };
    const asked = action(0, 'run', {}, { timestamp: '2026-01-01T00:00:00' });
    const more = { timestamp: '2026-01-01T00:00:10', handling };
    return card(asked, observation(1, 0, type, '', {}, more));
  };

  it('excludes waiting and queueing', () => {
    const times = { decidedBy: 'REST', waitedSeconds: 3, queuedSeconds: 2 };
    assert.equal(seconds(handled('run', times)), 5);
    assert.equal(status(card(action(0)), true).outcome, 'queued');
  });

  it('is null if the action never started', () => {
    const cancelled = handled('error', { neverStarted: true });
    assert.equal(seconds(cancelled), null);
    assert.equal(status(cancelled).outcome, 'cancelled');
  });
});

describe('withoutAnsi', () => {
  it('removes colours and nothing else', () => {
    assert.equal(withoutAnsi('\x1b[1;31ma[0m\x1b[0m\nb'), 'a[0m\nb');
  });
});
