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

  it('knows of tools that save, until their request has ended', () => {
    const agents = new AgentActivity();
    agents.beginSaving('Claude');
    assert.deepEqual([agents.isWorking, agents.name], [true, 'Claude']);
    agents.requestEnded();
    assert.deepEqual([agents.signs, agents.isWorking], [1, false]);
  });
});
