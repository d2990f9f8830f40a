import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';

import type { ISessionContext } from '@jupyterlab/apputils';

import {
  action,
  FakeServer,
  FakeSession,
  observation,
  waits
} from '../testing.js';
import { isCard } from './card.js';
import { KernelEvents } from './connection.js';
import { NotLoadedError, RuntimeGoneError } from './errors.js';

describe('KernelEvents', () => {
  let server: FakeServer;
  let session: FakeSession;
  let events: KernelEvents;
  beforeEach(() => {
    server = new FakeServer();
    session = new FakeSession();
    const context = session as unknown as ISessionContext;
    events = new KernelEvents(context, server, 1000);
  });
  const ids = () => events.entries.filter(isCard).map(({ id }) => id);
  /** Let what was started come to its end. */
  const settled = () => new Promise(resolve => setImmediate(resolve));

  it('lists live events without a request', async () => {
    session.publish(action(0));
    session.publish(observation(1, 0));
    session.publish(action(7));
    await settled();
    assert.deepEqual(ids(), [0, 7]);
    assert.equal(events.state, 'ready');
    assert.deepEqual(server.asked, []);
  });

  it('pages through history from the first id that is missing', async () => {
    server.events = [0, 1, 2, 3, 4, 5].map(id => action(id));
    session.publish(action(0));
    await events.refresh();
    assert.deepEqual(ids(), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(server.asked, ['k from 1', 'k from 4']);
  });

  it('fetches the event of a lost message', async () => {
    server.events = [action(0)];
    await events.refresh();
    server.events.push(action(1), action(2));
    session.publish(action(2));
    await settled();
    assert.deepEqual(ids(), [0, 1, 2]);
    session.publish(action(3));
    await settled();
    assert.deepEqual(server.asked, ['k from 0', 'k from 1']);
  });

  it('sends one request at a time, and repeats it if needed', async () => {
    await Promise.all([events.refresh(), events.refresh(), events.refresh()]);
    assert.equal(server.asked.length, 2);
  });

  it('reads from the start after the runtime restarted', async () => {
    server.events = [action(0), action(1)];
    await events.refresh();
    server.generation = 'h';
    server.events = [action(0), action(1), action(2), action(3)];
    await events.refresh();
    assert.deepEqual(ids(), [0, 1, 0, 1, 2, 3]);
    assert.equal(events.entries.length, 7);
  });

  it('reports a missing runtime, and checks again once it may be loaded', async () => {
    server.failure = new NotLoadedError();
    await events.refresh();
    assert.equal(events.state, 'not-loaded');
    session.execute('1 + 1');
    await settled();
    assert.equal(server.asked.length, 1);
    server.failure = null;
    session.execute('%load_ext oh_jupyter');
    await settled();
    assert.equal(events.state, 'ready');
  });

  it('reports a failure until history could be read', async () => {
    server.failure = new Error('500 out of order');
    await events.refresh();
    session.publish(action(0));
    assert.equal(events.state, 'failed');
    assert.equal(events.error, '500 out of order');
    server.failure = null;
    await events.refresh();
    assert.equal(events.state, 'ready');
  });

  it('marks running actions as lost at a restart, and refreshes after it', async () => {
    server.events = [action(0)];
    await events.refresh();
    session.statusChanged.emit('restarting');
    const card = events.entries[0];
    assert.ok(card && isCard(card) && card.lost);
    // The process that ends still reports that it is idle.
    session.statusChanged.emit('idle');
    await settled();
    assert.equal(events.state, 'unknown');
    server.failure = new NotLoadedError();
    session.connectionStatusChanged.emit('connected');
    await settled();
    assert.equal(events.state, 'not-loaded');
    assert.deepEqual(ids(), [0]);
  });

  it('handles a restart that another window asked for', async () => {
    server.events = [action(0)];
    await events.refresh();
    events.onServerRestart('other');
    assert.equal(events.state, 'ready');
    events.onServerRestart('k');
    const card = events.entries[0];
    assert.ok(card && isCard(card) && card.lost);
    assert.equal(events.state, 'unknown');
  });

  it('handles a restart once if the status and the server report it', async () => {
    session.statusChanged.emit('restarting');
    session.connectionStatusChanged.emit('connected');
    session.publish(action(0));
    events.onServerRestart('k');
    const card = events.entries.find(isCard);
    assert.ok(card && !card.lost);
    assert.equal(events.state, 'ready');
  });

  it('drops a response of a runtime that ended meanwhile', async () => {
    server.events = [action(0)];
    const refreshed = events.refresh();
    session.statusChanged.emit('restarting');
    await refreshed;
    assert.equal(events.state, 'unknown');
    assert.deepEqual(ids(), []);
    session.connectionStatusChanged.emit('connected');
    await settled();
    assert.equal(events.state, 'ready');
  });

  it('drops a response about a replaced kernel', async () => {
    server.events = [action(0)];
    const refreshed = events.refresh();
    session.session = { kernel: { id: 'other' } };
    session.kernelChanged.emit(null);
    await refreshed;
    assert.deepEqual(server.asked, ['k from 0', 'other from 0']);
    assert.deepEqual(ids(), [0]);
    session.session = null;
    assert.equal(events.state, 'no-kernel');
  });

  it('fetches a full card once', async () => {
    const clipped = { clipped: true };
    server.events = [action(0), observation(1, 0, 'run', 'aaaa')];
    session.publish(action(0));
    session.publish(observation(1, 0, 'run', 'a…', {}, clipped));
    const card = () => events.entries.filter(isCard)[0]!;
    await events.complete(card());
    assert.equal(card().observation?.content, 'aaaa');
    await events.complete(card());
    assert.deepEqual(server.asked, ['k event 1']);
  });

  it('does not fetch a card of an ended runtime', async () => {
    session.publish(action(0, 'run', {}, { clipped: true }));
    const card = events.entries.filter(isCard)[0]!;
    session.publish(action(0), 0, 'h');
    await assert.rejects(events.complete(card), RuntimeGoneError);
    assert.deepEqual(server.asked, []);
  });

  it('rejects an event of another runtime', async () => {
    const at = (timestamp: string) => ({ clipped: true, timestamp });
    server.events = [action(0, 'run', {}, at('2026-01-02'))];
    session.publish(action(0, 'run', {}, at('2026-01-01')));
    const card = events.entries.filter(isCard)[0]!;
    await assert.rejects(events.complete(card), RuntimeGoneError);
  });

  it('ignores messages that are no events', () => {
    const header = { msg_type: 'oh_jupyter_event' };
    session.iopubMessage.emit({ header, content: { event: 'none' } });
    assert.deepEqual(ids(), []);
  });

  it('reads the history of waiting actions even if the log is not shown', async () => {
    const args = { confirmation_state: 'awaiting_confirmation' };
    server.events = [action(0), action(1, 'run', args), action(2, 'write', {})];
    server.waiting = [waits(1, 'why'), waits(2, 'so')];
    await events.refreshWaiting();
    await settled();
    const reasons = events.waiting.map(({ id, confirmation }) => [
      id,
      confirmation?.reason
    ]);
    assert.deepEqual(reasons, [
      [1, 'why'],
      [2, 'so']
    ]);
    assert.equal(
      await events.decide(events.waiting[1]!, { approve: false }),
      'done'
    );
    assert.deepEqual(server.decided, ['k g 2 false']);
    session.publish(observation(3, 1));
    assert.deepEqual(events.waiting, []);
  });

  it('interrupts commands in the shell, and cells in the kernel', async () => {
    let cells = 0;
    session.session = {
      kernel: { id: 'k', interrupt: async () => (cells += 1) } as never
    };
    session.publish(action(0));
    session.publish(action(1, 'run_ipython', { code: '1' }));
    const [command, cell] = events.entries.filter(isCard);
    await events.stop(command!);
    assert.deepEqual([server.interrupted, cells], [['k g'], 0]);
    await events.stop(cell!);
    assert.deepEqual([server.interrupted, cells], [['k g'], 1]);
    session.statusChanged.emit('restarting');
    session.publish(action(0), 0, 'h');
    await assert.rejects(events.stop(command!), RuntimeGoneError);
  });

  it('applies a decision made in another tab', async () => {
    const args = { confirmation_state: 'awaiting_confirmation' };
    server.waiting = [waits(0, 'why')];
    session.publish(action(0, 'run', args));
    await settled();
    session.decide(0, 'another');
    assert.equal(events.waiting.length, 1);
    session.decide(0);
    assert.deepEqual(events.waiting, []);
  });

  it('has no waiting actions after a restart', async () => {
    const args = { confirmation_state: 'awaiting_confirmation' };
    server.waiting = [waits(0, 'why')];
    session.publish(action(0, 'run', args));
    await settled();
    assert.equal(events.waiting.length, 1);
    session.statusChanged.emit('restarting');
    assert.deepEqual(events.waiting, []);
    await events.refreshWaiting();
    assert.deepEqual(events.waiting, []);
  });

  it('reports when it is shown and hidden', () => {
    let told = 0;
    events.changed.connect(() => (told += 1));
    events.isShown = true;
    events.isShown = true;
    events.isShown = false;
    assert.equal(told, 2);
  });

  it('ignores messages once disposed', () => {
    events.dispose();
    session.publish(action(0));
    assert.deepEqual(ids(), []);
  });
});
