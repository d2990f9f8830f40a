import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { translateAsIs } from '../testing.js';
import { hunkLabel, stopLabel } from './labels.js';
import { ReviewedText } from './text.js';

translateAsIs();

describe('labels', () => {
  const label = (base: string, now: string) => {
    const text = ReviewedText.between(base, now);
    return hunkLabel(text, text.hunks[0]!);
  };

  it('have the lines of a hunk', () => {
    assert.equal(label('a\nb', 'a\nB'), 'B. Before: b');
    assert.equal(label('a\nc', 'a\nb\nc'), 'Added: b');
    assert.equal(label('a\nb\nc', 'a\nc'), 'Removed: b');
    assert.equal(label('a\nc', 'a\n\nc'), 'Added: empty line');
    assert.ok(label('a', 'b'.repeat(1000)).length < 250);
  });

  it('name the position', () => {
    assert.equal(stopLabel(2, 3, 'Added: b'), 'Change 2 of 3. Added: b');
  });
});
