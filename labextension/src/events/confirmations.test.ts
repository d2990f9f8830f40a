import assert from 'node:assert/strict';
import { beforeEach, describe, it, mock } from 'node:test';

import { action, observation, waits } from '../testing.js';
import type { IVerdict, IWaiting } from './api.js';
import { isCard, type ICard } from './card.js';
import type { EventRef } from './card.js';
import { Confirmations } from './confirmations.js';
import { NotLoadedError, RuntimeGoneError } from './errors.js';
import { EventLog } from './log.js';

const AWAITING = { confirmation_state: 'awaiting_confirmation' };

/** A kernel that has Actions waiting. */
class Server {
  waiting: IWaiting[] = [];
  failure: Error | null = null;
  generation = 'g';
  readonly decided: [number, boolean][] = [];
  asked = 0;
  /** Answers are sent when this is fulfilled, and tell how things were before. */
  held: Promise<void> = Promise.resolve();

  async confirmations(): Promise<readonly IWaiting[]> {
    this.asked += 1;
    return this._answer(this.waiting);
  }

  async decide(
    { generation, id }: EventRef,
    { approve }: IVerdict
  ): Promise<void> {
    await this._answer(null);
    if (generation !== this.generation) {
      throw new RuntimeGoneError();
    }
    this.decided.push([id, approve]);
  }

  private async _answer<T>(answer: T): Promise<T> {
    const failure = this.failure;
    await this.held;
    if (failure) {
      throw failure;
    }
    return answer;
  }
}

describe('Confirmations', () => {
  let server: Server;
  let log: EventLog;
  let confirmations: Confirmations;
  let unknown: number;
  beforeEach(() => {
    server = new Server();
    log = new EventLog();
    unknown = 0;
    confirmations = new Confirmations(server, log, {
      kernelId: () => 'k',
      decide: (place, verdict) => server.decide(place, verdict),
      onChanged: () => undefined,
      onUnknown: () => (unknown += 1)
    });
  });
  const settled = () => new Promise(resolve => setImmediate(resolve));
  const cards = () => log.entries.filter(isCard);
  const waiting = () =>
    cards()
      .filter(({ confirmation }) => confirmation)
      .map(({ id }) => id);
  const card = (id: number): ICard => cards().find(each => each.id === id)!;
  const live = (id: number, args = {}, type = 'run', source = 'agent') => {
    const event = { ...action(id, type, args), source: source as 'agent' };
    log.add('g', 'k', [event]);
    confirmations.onAction('g', event);
  };
  /** Hold the server's answers back until the function is called. */
  const hold = (): (() => void) => {
    let release = () => {};
    server.held = new Promise(resolve => (release = resolve));
    return release;
  };

  it('marks an action as waiting at once, and adds the reason later', async () => {
    server.waiting = [waits(0, 'it becomes another user')];
    live(0, AWAITING);
    assert.deepEqual(waiting(), [0]);
    assert.equal(card(0).confirmation?.asked, false);
    await settled();
    assert.equal(card(0).confirmation?.reason, 'it becomes another user');
    assert.equal(card(0).confirmation?.asked, true);
  });

  it('does not trust history on what waits', async () => {
    log.add('g', 'k', [action(0, 'run', AWAITING)]);
    await confirmations.refresh();
    assert.deepEqual(waiting(), []);
  });

  it('trusts the event if the server fails', async () => {
    log.add('g', 'k', [action(0, 'run', AWAITING), action(1)]);
    server.failure = new Error('500');
    live(2, AWAITING);
    await confirmations.refresh();
    assert.deepEqual(waiting(), [0, 2]);
    assert.equal(card(2).confirmation?.asked, true);
    server.failure = new NotLoadedError();
    await confirmations.refresh();
    assert.deepEqual(waiting(), []);
  });

  it('does not apply an older list to a newer action', async () => {
    const release = hold();
    const refreshed = confirmations.refresh();
    server.waiting = [waits(0, 'why')];
    live(0, AWAITING);
    release();
    await refreshed;
    assert.equal(card(0).confirmation?.reason, 'why');
    assert.equal(server.asked, 2);
  });

  it('stops waiting with the observation', async () => {
    server.waiting = [waits(0, 'why')];
    live(0, AWAITING);
    await settled();
    log.add('g', 'k', [observation(1, 0, 'user_rejected')]);
    assert.deepEqual(waiting(), []);
    await confirmations.refresh();
    assert.deepEqual(waiting(), []);
  });

  it('checks slow actions of types that do not announce it', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      live(0, {}, 'write', 'user');
      live(1, { confirmation_state: 'confirmed' });
      live(2, {}, 'read');
      log.add('g', 'k', [observation(3, 2, 'read')]);
      mock.timers.tick(10_000);
      assert.equal(server.asked, 0);
      server.waiting = [waits(4, 'it changes /etc')];
      live(4, {}, 'write');
      mock.timers.tick(10_000);
      assert.equal(server.asked, 1);
    } finally {
      mock.timers.reset();
    }
    await settled();
    assert.deepEqual(waiting(), [4]);
  });

  it('asks a kernel without a runtime only once', async () => {
    server.failure = new NotLoadedError();
    await Promise.all([confirmations.look(), confirmations.look()]);
    await confirmations.look();
    assert.equal(server.asked, 1);
    server.failure = null;
    live(0, AWAITING);
    await settled();
    assert.equal(server.asked, 2);
  });

  it('reports waiting actions that the log lacks', async () => {
    server.waiting = [waits(7, 'why')];
    await confirmations.refresh();
    assert.equal(unknown, 1);
  });

  describe('decide', () => {
    beforeEach(async () => {
      server.waiting = [waits(0, 'why')];
      live(0, AWAITING);
      await settled();
    });

    it('settles in every tab, even if the list still has the action', async () => {
      confirmations.onDecided({ generation: 'another', id: 0 });
      assert.deepEqual(waiting(), [0]);
      confirmations.onDecided({ generation: 'g', id: 0 });
      assert.deepEqual(waiting(), []);
      await confirmations.refresh();
      assert.deepEqual(waiting(), []);
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'gone'
      );
    });

    it('is busy until the kernel has the decision', async () => {
      const release = hold();
      const decided = confirmations.decide(card(0), { approve: true });
      assert.equal(card(0).confirmation?.busy, true);
      assert.equal(
        await confirmations.decide(card(0), { approve: false }),
        'gone'
      );
      release();
      assert.equal(await decided, 'done');
      assert.deepEqual(server.decided, [[0, true]]);
      assert.deepEqual(waiting(), []);
      // The list that was on its way still has it.
      await confirmations.refresh();
      assert.deepEqual(waiting(), []);
    });

    it('keeps the card waiting with the error after a failure', async () => {
      server.failure = new Error('403 Forbidden');
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'failed'
      );
      assert.deepEqual(card(0).confirmation, {
        asked: true,
        agent: '',
        reason: 'why',
        diff: '',
        expires: 0,
        sandboxed: null,
        form: null,
        busy: false,
        error: '403 Forbidden'
      });
      server.failure = null;
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'done'
      );
    });

    it('keeps the error if the list fails afterwards', async () => {
      const release = hold();
      server.failure = new Error('500');
      live(1, AWAITING);
      server.held = Promise.resolve();
      server.failure = new Error('No.');
      assert.equal(
        await confirmations.decide(card(1), { approve: true }),
        'failed'
      );
      release();
      await confirmations.look();
      assert.equal(card(1).confirmation?.asked, true);
      assert.equal(card(1).confirmation?.error, 'No.');
    });

    it('is too late if the action no longer waits', async () => {
      server.failure = new NotLoadedError();
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'gone'
      );
      assert.deepEqual(waiting(), []);
    });

    it('never reaches the action of another runtime with the same id', async () => {
      server.generation = 'another';
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'gone'
      );
      assert.deepEqual(server.decided, []);
      log.end();
      assert.equal(
        await confirmations.decide(card(0), { approve: true }),
        'gone'
      );
    });
  });
});
