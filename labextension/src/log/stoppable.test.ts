import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation } from '../testing.js';
import { actionJson, findStoppable } from './stoppable.js';

describe('findStoppable', () => {
  it('finds running actions, not queued, ended or lost ones', () => {
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
  it('returns what an agent sends', () => {
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
