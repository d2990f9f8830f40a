import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ICommandBox } from '../control/operations.js';
import { translateAsIs } from '../testing.js';
import { sandboxLabels } from './sandbox.js';

translateAsIs();

test('a label has the sandbox and its network', () => {
  const label = (place: ICommandBox['place'], network = '') =>
    sandboxLabels({ place, network }).label;
  assert.equal(label('box', 'none'), 'sandbox, no network');
  assert.equal(label('kernel', 'listed'), 'sandbox, listed hosts');
  assert.equal(label('none'), 'no sandbox');
  assert.equal(label('missing'), 'no sandbox here');
});
