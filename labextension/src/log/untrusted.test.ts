import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readUntrusted } from './untrusted.js';

test('settings that need trust are read', () => {
  const settings = [['confirmation', '"never"']];
  const fields = { file: '/w/config.toml', digest: 'd', settings };
  assert.deepEqual(readUntrusted(fields), fields);
});

test('without such settings there is nothing to trust', () => {
  assert.equal(readUntrusted({ file: '', digest: '', settings: [] }), null);
  assert.equal(readUntrusted({ settings: 'none' }), null);
  assert.equal(readUntrusted(null), null);
});
