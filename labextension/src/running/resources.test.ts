import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { IRuntimeStatus } from '../control/operations.js';
import { resourcesIn } from './resources.js';

const resources = (fields: Partial<IRuntimeStatus>) =>
  resourcesIn({
    shell: null,
    cwd: '/w',
    browsers: [],
    agents: {},
    ...fields
  } as IRuntimeStatus);

test('the resources of a runtime are listed', () => {
  const fields = {
    shell: 12,
    browsers: ['default'],
    agents: { claude: 'busy' as const }
  };
  assert.deepEqual(resources(fields), [
    { kind: 'shell', name: '', detail: '/w' },
    { kind: 'browser', name: 'default', detail: '' },
    { kind: 'agent', name: 'claude', detail: 'busy' }
  ]);
});

test('a runtime may have no resources', () => {
  assert.deepEqual(resources({}), []);
});
