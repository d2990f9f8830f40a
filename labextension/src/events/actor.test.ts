import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action } from '../testing.js';
import { agentName } from './actor.js';

describe('the name of an agent', () => {
  const nameOf = (actor: Record<string, string>): string =>
    agentName(action(0, 'run', {}, { options: { actor } }));

  it('is its command, whatever its client is called', () => {
    const guest = 'claude-0a1b2c3d';
    assert.equal(nameOf({ guest, client: 'claude-code' }), 'Claude');
    assert.equal(nameOf({ client: 'Claude Code' }), 'Claude Code');
    assert.equal(nameOf({ persona: 'jupyter-ai::Jupyternaut' }), 'Jupyternaut');
    assert.equal(nameOf({ user: 'ada' }), '');
  });
});
