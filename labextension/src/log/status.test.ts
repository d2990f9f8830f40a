import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { IHandling } from '../events/wire.js';
import { action, card, observation, UNDECIDED } from '../testing.js';
import { seconds, status, withoutAnsi } from './status.js';

const ran = (metadata: object) =>
  status(card(action(0), observation(1, 0, 'run', '', { metadata })));

const answer = (type: string, content = '', extras = {}) =>
  status(card(action(0), observation(1, 0, type, content, extras))).outcome;

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

  it('detects the failure of each type of observation', () => {
    assert.equal(answer('error', 'no such file'), 'failed');
    assert.equal(answer('edit', 'ERROR:\nno match'), 'failed');
    assert.equal(answer('edit', 'The file has been edited.'), 'ok');
    assert.equal(answer('browse', '', { error: true }), 'failed');
    assert.equal(answer('browse', 'ERROR: a page may say so'), 'ok');
    assert.equal(answer('mcp', '{"isError": true}'), 'failed');
    assert.equal(answer('mcp', '{"isError": false}'), 'ok');
    assert.equal(answer('user_rejected', 'no'), 'rejected');
    assert.equal(answer('read', 'text'), 'ok');
  });

  it('tells a failed read from a file about errors', () => {
    const extras = { impl_source: 'oh_aci', path: '/a' };
    assert.equal(answer('read', 'ERROR:\nno such file', extras), 'failed');
    assert.equal(answer('read', 'ERROR:\na line of a log'), 'ok');
    const shown = "Here's the result of running `cat -n` on /a:\n1\tERROR:";
    assert.equal(answer('read', shown, extras), 'ok');
  });

  it('recognises an exception of a cell, also in colours', () => {
    const rule = '-'.repeat(75);
    const traceback = `${rule}\nNameError    Traceback (most recent call last)`;
    const coloured = traceback.replace(rule, `\x1b[31m${rule}\x1b[0m`);
    assert.equal(answer('run_ipython', traceback), 'failed');
    assert.equal(answer('run_ipython', `1\n${coloured}`), 'failed');
    assert.equal(
      answer('run_ipython', 'a note on Traceback (most recent call last)'),
      'ok'
    );
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

  const ended = (type: string, fields: Partial<IHandling>) => {
    const handling = { ...HANDLING, ...fields };
    const asked = action(0, 'run', {}, { timestamp: '2026-01-01T00:00:00' });
    const more = { timestamp: '2026-01-01T00:00:10', handling };
    return card(asked, observation(1, 0, type, '', {}, more));
  };

  it('excludes waiting and queueing', () => {
    const times = { decidedBy: 'REST', waitedSeconds: 3, queuedSeconds: 2 };
    assert.equal(seconds(ended('run', times)), 5);
    assert.equal(status(card(action(0)), true).outcome, 'queued');
  });

  it('is null if the action never started', () => {
    const cancelled = ended('error', { neverStarted: true });
    assert.equal(seconds(cancelled), null);
    assert.equal(status(cancelled).outcome, 'cancelled');
  });
});

describe('withoutAnsi', () => {
  it('removes colours and nothing else', () => {
    assert.equal(withoutAnsi('\x1b[1;31ma[0m\x1b[0m\nb'), 'a[0m\nb');
  });
});
