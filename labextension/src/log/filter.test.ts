import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { LogEntry } from '../events/card.js';
import { action, card, observation, UNDECIDED } from '../testing.js';
import { filtered, type IFilter } from './filter.js';

const restart: LogEntry = { key: 'fresh/h', sameKernel: true };
const ls = card(action(0, 'run', { command: 'ls' }));
const read = card(
  action(1, 'read', { path: '/a/Notes.md' }),
  observation(2, 1, 'read', 'calm sea')
);
const pwd = card(action(3, 'run', { command: 'pwd' }));
const all = [ls, read, restart, pwd];

function keys(filter: Partial<IFilter>): string[] {
  return filtered(all, { words: '', kind: null, ...filter }).map(
    ({ key }) => key
  );
}

describe('filtered', () => {
  it('returns the same entries without a filter', () => {
    assert.equal(filtered(all, { words: ' ', kind: null }), all);
  });

  it('matches all words, in any case and any part of a card', () => {
    assert.deepEqual(keys({ words: 'SEA notes' }), [read.key]);
    assert.deepEqual(keys({ words: 'sea pwd' }), []);
  });

  it('never hides pending actions', () => {
    const waiting = { ...pwd, confirmation: UNDECIDED };
    const filter = { words: 'sea', kind: null };
    assert.deepEqual(filtered([ls, waiting], filter), [waiting]);
  });

  it('keeps a fresh start only between cards that are shown', () => {
    assert.deepEqual(keys({ kind: 'run' }), [ls.key, restart.key, pwd.key]);
    assert.deepEqual(keys({ kind: 'read' }), [read.key]);
    assert.deepEqual(keys({ words: 'pwd' }), [pwd.key]);
  });
});
