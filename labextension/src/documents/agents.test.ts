import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, observation } from '../testing.js';
import { AgentActivity } from './agents.js';

describe('AgentActivity', () => {
  it('counts what agents do, and not what a person does', () => {
    const agents = new AgentActivity();
    const observe = (event: Parameters<AgentActivity['observe']>[0]['event']) =>
      agents.observe({ event, generation: 'g', seq: event.id });
    observe(action(0, 'edit', {}, { source: 'user' }));
    observe(observation(1, 0, 'edit', '', {}, { source: 'user' }));
    assert.deepEqual([agents.signs, agents.isWorking], [0, false]);
    const actor = { persona: 'jupyter-ai::personas::Claude' };
    observe(action(2, 'run', {}, { options: { actor } }));
    assert.deepEqual([agents.isWorking, agents.name], [true, 'Claude']);
    observe(observation(3, 2));
    assert.deepEqual([agents.signs, agents.isWorking], [1, false]);
  });

  it('calls an agent as its client, or else its command, does', () => {
    const nameOf = (actor: Record<string, string>): string => {
      const agents = new AgentActivity();
      const event = action(0, 'run', {}, { options: { actor } });
      agents.observe({ event, generation: 'g', seq: 0 });
      return agents.name;
    };
    const guest = 'claude-0a1b2c3d';
    assert.equal(nameOf({ guest, client: 'Claude Code' }), 'Claude Code');
    assert.equal(nameOf({ guest }), 'Claude');
    assert.equal(nameOf({ user: 'ada' }), '');
  });

  it('knows of tools that save, until their request has ended', () => {
    const agents = new AgentActivity();
    agents.beginSaving('Claude');
    assert.deepEqual([agents.isWorking, agents.name], [true, 'Claude']);
    agents.requestEnded();
    assert.deepEqual([agents.signs, agents.isWorking], [1, false]);
  });
});
