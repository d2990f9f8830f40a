import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readResources } from './resources.js';

test('the resources of a runtime are listed', () => {
  const runtime = {
    shell: 12,
    cwd: '/w',
    browsers: ['default', 7],
    agents: { claude: 'busy' }
  };
  assert.deepEqual(readResources(runtime), [
    { kind: 'shell', name: '', detail: '/w' },
    { kind: 'browser', name: 'default', detail: '' },
    { kind: 'agent', name: 'claude', detail: 'busy' }
  ]);
});

test('a runtime may have no resources', () => {
  assert.deepEqual(readResources({ shell: null }), []);
});
