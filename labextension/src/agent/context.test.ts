import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeSession } from '../testing.js';
import { PromptBox } from './box.js';
import { completeMention, mentionAt, type IContextItem } from './context.js';

const CELL: IContextItem = {
  kind: 'text',
  of: 'cell',
  name: 'Cell 1',
  id: 'a'
};

const box = () => new PromptBox({ sessionContext: new FakeSession() } as never);

test('a mention is a word after @ at the cursor', () => {
  assert.deepEqual(mentionAt('look at @da', 11), { start: 8, query: 'da' });
  assert.deepEqual(mentionAt('@', 1), { start: 0, query: '' });
  assert.equal(mentionAt('@da ', 4), null);
  assert.equal(mentionAt('me@example', 10), null);
  const mention = mentionAt('see @da here', 7)!;
  assert.equal(
    completeMention('see @da here', mention, 'd.csv'),
    'see @d.csv here'
  );
});

test('the same context is in a prompt only once', () => {
  const prompt = box();
  prompt.add(CELL, { ...CELL, of: 'error' });
  prompt.add({ ...CELL, text: 'changed' });
  assert.deepEqual(
    prompt.context.map(({ of, text }) => [of, text]),
    [
      ['error', undefined],
      ['cell', 'changed']
    ]
  );
});

test('a sent prompt empties the box and comes back if it fails', () => {
  const prompt = box();
  prompt.text = 'fix it';
  prompt.add(CELL);
  const sent = prompt.take('claude');
  assert.deepEqual(
    [sent.text, sent.agent, prompt.text],
    ['fix it', 'claude', '']
  );
  prompt.restore(sent);
  assert.deepEqual([prompt.text, prompt.context], ['fix it', [CELL]]);
  prompt.text = 'another';
  prompt.restore(sent);
  assert.equal(prompt.text, 'another');
});

test('a queue waits after a stop until the person sends again', () => {
  const prompt = box();
  const queued = prompt.take('claude');
  prompt.begin(queued);
  prompt.enqueue(queued);
  prompt.end(false);
  assert.equal(prompt.next(), undefined);
  prompt.begin(queued);
  prompt.end(true);
  assert.equal(prompt.next(), queued);
  assert.equal(prompt.next(), undefined);
});
