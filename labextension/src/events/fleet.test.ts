import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';

import type { Session } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import {
  action,
  FakeServer,
  FakeSession,
  observation,
  waits
} from '../testing.js';
import { RuntimeGoneError } from './errors.js';
import { FleetEvents, fleetsOf, fleetMember } from './fleet.js';

/** A connection to a session, which is its own. */
class Connection extends FakeSession {
  constructor(readonly id: string) {
    super(`kernel-${id}`);
    this.kernel = this.session?.kernel;
  }

  readonly kernel;
  isDisposed = false;

  dispose(): void {
    this.isDisposed = true;
  }
}

/** The sessions of a server. */
class Sessions {
  models: Session.IModel[] = [];
  readonly connections = new Map<string, Connection>();
  readonly runningChanged = new Signal<this, Session.IModel[]>(this);

  running(): IterableIterator<Session.IModel> {
    return this.models[Symbol.iterator]();
  }

  connectTo({ model }: { model: Session.IModel }): Connection {
    const made = new Connection(model.id);
    this.connections.set(model.id, made);
    return made;
  }

  start(id: string, name: string, type = 'fleet'): void {
    this.models.push({ id, name, type, path: id, kernel: null });
    this.runningChanged.emit(this.models);
  }

  end(id: string): void {
    this.models = this.models.filter(model => model.id !== id);
    this.connections.get(id)?.statusChanged.emit('dead');
    this.connections.get(id)?.dispose();
    this.runningChanged.emit(this.models);
  }
}

/** An Action that began at a second of a minute. */
function at(second: number, id: number) {
  const timestamp = `2026-01-01T00:00:${String(second).padStart(2, '0')}`;
  return action(id, 'run', { command: `at ${second}` }, { timestamp });
}

describe('FleetEvents', () => {
  let server: FakeServer;
  let sessions: Sessions;
  let events: FleetEvents;
  beforeEach(() => {
    server = new FakeServer();
    sessions = new Sessions();
    sessions.start('a', 'Fleet x 1');
    sessions.start('b', 'Fleet x 2');
    sessions.start('other', 'Fleet y 1');
    sessions.start('n', 'Fleet x 3', 'notebook');
    const manager = sessions as unknown as Session.IManager;
    events = new FleetEvents('Fleet x', manager, server, 1000);
  });
  const of = (id: string) => sessions.connections.get(id)!;
  const seen = () =>
    events.entries.map(card => [
      events.kernelOf(card),
      card.action?.args.command
    ]);

  it('finds the fleets, and their sizes, by the names of sessions', () => {
    assert.deepEqual(fleetsOf(sessions.models), [
      { name: 'Fleet x', size: 2 },
      { name: 'Fleet y', size: 1 }
    ]);
    assert.deepEqual(fleetMember({ name: 'Fleet 7 12', type: 'fleet' }), {
      fleet: 'Fleet 7',
      number: '12'
    });
    assert.equal(fleetMember({ name: 'none', type: 'fleet' }), null);
  });

  it('merges the events of its kernels by time', () => {
    of('b').publish(at(2, 0), 0, 'gb');
    of('a').publish(at(1, 0), 0, 'ga');
    of('a').publish(at(3, 1), 1, 'ga');
    assert.deepEqual(seen(), [
      ['1', 'at 1'],
      ['2', 'at 2'],
      ['1', 'at 3']
    ]);
    assert.deepEqual([...sessions.connections.keys()], ['a', 'b']);
    assert.equal(events.state, 'ready');
  });

  it('keeps the order of one kernel despite its clock', () => {
    of('a').publish(at(5, 0), 0, 'ga');
    of('a').publish(at(3, 1), 1, 'ga');
    of('b').publish(at(4, 0), 0, 'gb');
    assert.deepEqual(
      seen().map(([, command]) => command),
      ['at 4', 'at 5', 'at 3']
    );
  });

  it('decides and stops in the kernel of the card', async () => {
    const awaits = {
      command: 'x',
      confirmation_state: 'awaiting_confirmation'
    };
    server.waiting = [waits(0, 'r')];
    of('a').publish(at(1, 0), 0, 'ga');
    of('b').publish({ ...at(2, 0), args: awaits }, 0, 'gb');
    const [card] = events.waiting;
    assert.equal(events.kernelOf(card!), '2');
    assert.equal(await events.decide(card!, { approve: true }), 'done');
    assert.deepEqual(server.decided, ['kernel-b gb 0 true']);
    await events.stop(events.entries[0]!);
    assert.deepEqual(server.interrupted, ['kernel-a ga']);
    const unknown = { ...card!, generation: 'none' };
    await assert.rejects(() => events.stop(unknown), RuntimeGoneError);
    await assert.rejects(events.open(unknown).ready, RuntimeGoneError);
    assert.equal(await events.decide(unknown, { approve: true }), 'gone');
  });

  it('follows a replacement kernel, and keeps the old cards', async () => {
    of('a').publish(at(1, 0), 0, 'ga');
    sessions.end('a');
    sessions.start('c', 'Fleet x 1');
    of('c').publish(at(2, 0), 0, 'gc');
    of('c').publish(observation(1, 0), 1, 'gc');
    assert.deepEqual(seen(), [
      ['1', 'at 1'],
      ['1', 'at 2']
    ]);
    const [lost, done] = events.entries;
    assert.equal(lost!.lost, true);
    assert.equal(done!.lost, false);
    await assert.rejects(() => events.stop(lost!), RuntimeGoneError);
  });

  it('reports when all its kernels ended, and follows none when disposed', () => {
    sessions.end('a');
    sessions.end('b');
    assert.equal(events.state, 'no-kernel');
    events.dispose();
    sessions.start('d', 'Fleet x 1');
    assert.equal(sessions.connections.has('d'), false);
  });
});
