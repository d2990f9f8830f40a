import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs } from '../testing.js';
import { readSandbox, sandboxLabels } from './sandbox.js';

translateAsIs();

test('the place of commands is read from the status', () => {
  const box = { place: 'box', network: 'ask' };
  assert.deepEqual(readSandbox({ box, cwd: '/' }), box);
  assert.equal(readSandbox({ cwd: '/' }), null);
});

test('a label has the sandbox and its network', () => {
  const label = (place: string, network = '') =>
    sandboxLabels({ place, network }).label;
  assert.equal(label('box', 'none'), 'sandbox, no network');
  assert.equal(label('kernel', 'listed'), 'sandbox, listed hosts');
  assert.equal(label('none'), 'no sandbox');
  assert.equal(label('missing'), 'no sandbox here');
});
