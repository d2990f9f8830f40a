import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card } from '../testing.js';
import { actionMagic } from './magic.js';

describe('actionMagic', () => {
  const magic = (...parts: Parameters<typeof action>) =>
    actionMagic(card(action(...parts)));

  it('returns magics for commands and cells', () => {
    assert.equal(magic(0, 'run', { command: 'ls' }), '%oh_run ls');
    assert.equal(magic(0, 'run', { command: '-x' }), '%oh_run -- -x');
    assert.equal(magic(0, 'run', { command: 'a\nb' }), '%%oh_run\na\nb');
    const code = { code: 'x = 1\nx' };
    assert.equal(magic(0, 'run_ipython', code), '%%oh_run --cell\nx = 1\nx');
  });

  it('returns Python for other actions', () => {
    const args = { path: 'a "b".txt', view_range: [1, 2], start: null };
    assert.equal(
      magic(0, 'read', { ...args, confirmation_state: 'confirmed' }),
      'oh.execute({"action": "read", "args": {"path": "a \\"b\\".txt", ' +
        '"view_range": [1, 2], "start": None}})'
    );
    assert.match(
      magic(0, 'edit', {}, { options: { dry_run: true } }),
      /"oh_jupyter": \{"dry_run": True\}/
    );
  });
});
