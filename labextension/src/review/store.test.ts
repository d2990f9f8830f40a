import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { unifiedDiff } from './diff.js';
import { FakeStorage } from '../testing.js';
import { FILE_ID } from './model.js';
import { type INamedReview, ReviewStore } from './store.js';

function review(outputs: unknown[]): INamedReview {
  const cell = { cell_type: 'code', source: 'a', metadata: {}, outputs };
  return {
    order: ['0'],
    cells: [],
    base: {},
    added: [],
    types: {},
    deleted: { 0: cell } as never,
    ran: [],
    agent: 'claude'
  };
}

describe('ReviewStore', () => {
  it('keeps the review of each document until there is none', () => {
    const memory = new FakeStorage();
    const store = new ReviewStore(memory, '/');
    store.save('a.ipynb', review([]));
    assert.deepEqual(store.load('a.ipynb'), review([]));
    assert.equal(store.load('b.ipynb'), null);
    store.save('a.ipynb', null);
    assert.equal(memory.items.size, 0);
  });

  it('leaves out large outputs, and what the browser does not take', () => {
    const memory = new FakeStorage();
    const store = new ReviewStore(memory, '/');
    store.save('a.ipynb', review(['x'.repeat(2_000_000)]));
    const deleted = store.load('a.ipynb')?.deleted['0'];
    assert.deepEqual([deleted?.source, deleted?.outputs], ['a', undefined]);
    memory.isFull = true;
    store.save('a.ipynb', review([]));
    assert.equal(memory.items.size, 0);
  });
});

describe('unifiedDiff', () => {
  it('has the lines of a text', () => {
    const text = (source: string) => [{ id: FILE_ID, type: 'file', source }];
    assert.equal(
      unifiedDiff('a.py', text('a\nb\nc'), text('a\nB')),
      '--- a.py\n+++ a.py\n@@ -2,2 +2 @@\n-b\n-c\n+B'
    );
  });

  it('has the cells of a notebook below their headings', () => {
    const cell = (id: string) => ({ id, type: 'code', source: `x${id}` });
    assert.equal(
      unifiedDiff('a.ipynb', [cell('0')], [cell('0'), cell('1')]),
      '--- a.ipynb\n+++ a.ipynb\n@@ -2,0 +3,2 @@\n+# %% [1] code id=1\n+x1'
    );
  });
});
