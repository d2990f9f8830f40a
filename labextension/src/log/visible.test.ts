import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { visible } from './visible.js';

describe('visible', () => {
  it('shows what a terminal or a browser would hide', () => {
    assert.equal(visible('rm x #\x1b[2K'), 'rm x #\\x1b[2K');
    assert.equal(
      visible('a\u202eb\u200bc\u00a0d\re'),
      'a\\u202eb\\u200bc\\xa0d\\x0de'
    );
    assert.equal(visible('\u3164\ufe0f\u{e0101}'), '\\u3164\\ufe0f\\U000e0101');
  });

  it('leaves what is seen', () => {
    const text = 'häß 日本 "quoted" \\ 👩\n\tline';
    assert.equal(visible(text), text);
  });
});
