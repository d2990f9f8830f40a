import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs } from '../testing.js';
import { restrictionLabel } from './restrictions.js';

translateAsIs();

test('a label has the capability, and what is left of it', () => {
  const label = (capability: string, value: string) =>
    restrictionLabel({ capability, value, reason: '' });
  assert.equal(label('shell', 'off'), 'shell off');
  assert.equal(label('plugins', 'jupyter, vscode'), 'plugins: jupyter, vscode');
  assert.equal(label('approvals_over_rest', 'off'), 'approvals over REST off');
  assert.equal(label('camera', 'off'), 'camera off');
});
