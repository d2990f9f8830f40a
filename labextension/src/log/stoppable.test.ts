import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation } from '../testing.js';
import { actionJson, findStoppable } from './stoppable.js';

describe('findStoppable', () => {
  it('finds what runs, not what is queued behind it, has ended or was lost', () => {
    const cell = action(6, 'run_ipython', { code: '1' });
    const found = findStoppable([
      card(action(0), observation(1, 0)),
      card(action(2), null, true),
      card(action(3)),
      card(action(4)),
      card(action(5, 'browse', { url: 'about:blank' })),
      card(cell)
    ]);
    assert.deepEqual([...found], ['g/3', 'g/6']);
  });
});

describe('actionJson', () => {
  it('is what an agent would send', () => {
    const args = { command: 'ls', confirmation_state: 'confirmed' };
    const sent = JSON.parse(
      actionJson(card(action(0, 'run', args, { options: { dry_run: true } })))
    );
    assert.deepEqual(sent, {
      action: {
        action: 'run',
        args: { command: 'ls' },
        oh_jupyter: { dry_run: true }
      }
    });
  });
});
