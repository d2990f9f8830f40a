import assert from 'node:assert/strict';
import { test } from 'node:test';

import { FakeSession, FakeStorage } from '../testing.js';
import type { IKernelEvents } from '../tokens.js';
import { PromptBox } from './box.js';
import { Drafts } from './drafts.js';

const CELL = { kind: 'text', of: 'cell', name: 'Cell 1', text: 'x' } as const;

/** Notebook whose box is opened any number of times, as by reloads of the page. */
function notebook() {
  const storage = new FakeStorage();
  const drafts = new Drafts(storage, '/');
  const sessionContext = new FakeSession();
  const events = { sessionContext } as unknown as IKernelEvents;
  const open = () => new PromptBox(events, drafts);
  return { storage, sessionContext, open };
}

test('a box survives a reload, and leaves nothing once it is empty', () => {
  const { storage, open } = notebook();
  const box = open();
  box.text = 'Describe x';
  box.isNew = true;
  box.add(CELL);
  const again = open();
  assert.deepEqual(
    [again.text, again.isNew, again.context],
    ['Describe x', true, [CELL]]
  );
  again.take('claude');
  assert.equal(storage.items.size, 0);
});

test('a queue survives a reload, with the prompt that was being sent', () => {
  const { open } = notebook();
  const box = open();
  const prompts = ['first', 'second'].map(text => {
    box.text = text;
    return box.take('claude');
  });
  box.enqueue(prompts[1]!);
  box.begin(prompts[0]!);
  const again = open();
  assert.deepEqual(again.queue, prompts);
  assert.equal(again.isHeld, false);
  // The kernel reports a turn that the first one began.
  again.removeKnown(new Set([prompts[0]!.key]));
  assert.deepEqual(open().queue, [prompts[1]]);
});

test('a draft moves with its notebook', () => {
  const { storage, sessionContext, open } = notebook();
  const box = open();
  box.text = 'a';
  sessionContext.path = 'b.ipynb';
  box.text = 'ab';
  assert.equal(storage.items.size, 1);
  assert.equal(open().text, 'ab');
});

test('a prompt that is not sent returns before the queue if the box is in use', () => {
  const { open } = notebook();
  const box = open();
  box.text = 'lost';
  const lost = box.take('claude');
  box.text = 'next';
  box.restore(lost);
  assert.equal(box.text, 'next');
  assert.deepEqual(
    box.queue.map(({ text }) => text),
    ['lost']
  );
  assert.notEqual(box.queue[0]?.key, lost.key);
  assert.equal(box.next(), undefined);
});
