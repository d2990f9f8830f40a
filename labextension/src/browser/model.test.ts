import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Signal } from '@lumino/signaling';

import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { BrowserModel } from './model.js';

type Content = Record<string, unknown>;

/** Kernel whose replies are sent by the test. */
class FakeKernel {
  readonly status = 'idle';
  readonly clientId = 'c';
  readonly username = 'u';
  readonly asked: unknown[] = [];
  readonly replies: (() => void)[] = [];

  sendControlMessage({ content }: { content: Content }) {
    this.asked.push(content.actions ?? content.hold);
    const done = new Promise(resolve => {
      this.replies.push(() => resolve({ content: { status: 'ok' } }));
    });
    return { done, dispose: () => undefined };
  }
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('the browser is handed back after the queued calls', async () => {
  const kernel = new FakeKernel();
  const events = {
    sessionContext: { session: { kernel } },
    changed: new Signal<object, void>({})
  };
  const model = new BrowserModel({
    current: events as unknown as IKernelEvents,
    currentChanged: new Signal<object, void>({})
  } as unknown as IOhRuntime);
  model.act('click("1")');
  model.act('press("Enter")');
  const handedBack = model.hold(false);
  await settled();
  assert.deepEqual(kernel.asked, ['click("1")']);
  for (const count of [2, 3]) {
    kernel.replies.at(-1)!();
    await settled();
    assert.equal(kernel.asked.length, count);
  }
  assert.deepEqual(kernel.asked, ['click("1")', 'press("Enter")', false]);
  kernel.replies.at(-1)!();
  await handedBack;
});
