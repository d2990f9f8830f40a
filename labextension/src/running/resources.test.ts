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
  assert.deepEqual(readResources({ runtime }), [
    { kind: 'shell', name: '', detail: '/w' },
    { kind: 'browser', name: 'default', detail: '' },
    { kind: 'agent', name: 'claude', detail: 'busy' }
  ]);
});

test('a runtime without resources differs from no runtime', () => {
  assert.deepEqual(readResources({ runtime: { shell: null } }), []);
  assert.equal(readResources({ runtime: null }), null);
  assert.equal(readResources(7), null);
});
