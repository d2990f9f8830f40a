import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { IProgress } from '../control/operations.js';
import { progressOf } from './progress.js';

describe('progressOf', () => {
  it('yields progress until the end, and passes on what was seen', async () => {
    const answers: readonly IProgress[] = [
      { state: 'queued', text: '' },
      { state: 'running', text: 'one' },
      { state: 'ended', text: '' }
    ];
    const seen: (IProgress | null)[] = [];
    const told: IProgress[] = [];
    const look = async (known: IProgress | null) => {
      seen.push(known);
      return answers[seen.length - 1]!;
    };
    for await (const each of progressOf(look)) {
      told.push(each);
    }
    assert.deepEqual(told, answers.slice(0, 2));
    assert.deepEqual(seen, [null, ...answers.slice(0, 2)]);
  });

  it('ends if the request fails', async () => {
    const news = progressOf(() => Promise.reject(new Error('gone')));
    assert.equal((await news.next()).done, true);
  });
});
