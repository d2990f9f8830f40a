import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';

import { action, observation } from '../testing.js';
import { isCard, type LogEntry } from './card.js';
import { EventLog } from './log.js';
import type { WireEvent } from './wire.js';

/** Entries in short: "0" a pending action, "0+1" an answered one, "?1" a lone answer. */
function short(entries: readonly LogEntry[]): string[] {
  return entries.map(entry => {
    if (!isCard(entry)) {
      return entry.sameKernel ? 'restart' : 'switch';
    }
    const answer = entry.observation ? `+${entry.observation.id}` : '';
    const lost = entry.lost ? ' lost' : '';
    return entry.action ? `${entry.id}${answer}${lost}` : `?${entry.id}`;
  });
}

function permutations<T>(items: readonly T[]): T[][] {
  return items.length < 2
    ? [[...items]]
    : items.flatMap((item, index) =>
        permutations(items.filter((_, other) => other !== index)).map(rest => [
          item,
          ...rest
        ])
      );
}

describe('EventLog', () => {
  let log: EventLog;
  beforeEach(() => {
    log = new EventLog();
  });
  const add = (...events: WireEvent[]) => log.add('g', 'k', events);

  it('folds an observation into the card of its action', () => {
    add(action(0));
    assert.deepEqual(short(log.entries), ['0']);
    add(observation(1, 0));
    assert.deepEqual(short(log.entries), ['0+1']);
  });

  it('builds the same log for any order of events', () => {
    const events = [
      action(0),
      observation(2, 0),
      action(1),
      observation(3, 1),
      observation(4, null, 'error')
    ];
    for (const order of permutations(events)) {
      log = new EventLog();
      order.forEach(event => add(event));
      assert.deepEqual(short(log.entries), ['0+2', '1+3', '?4']);
      assert.equal(log.current?.firstMissing, 5);
    }
  });

  it('keeps each event once when history repeats live messages', () => {
    add(action(2), observation(3, 2));
    add(action(0), observation(1, 0), action(2), observation(3, 2));
    assert.deepEqual(short(log.entries), ['0+1', '2+3']);
  });

  it('knows where missing history starts', () => {
    add(action(0), observation(1, 0));
    assert.equal(log.current?.firstMissing, 2);
    add(action(5));
    assert.equal(log.current?.firstMissing, 2);
    add(action(2), observation(3, 2), observation(4, null));
    assert.equal(log.current?.firstMissing, 6);
  });

  it('replaces a clipped event by the full one, and never back', () => {
    const clipped = observation(1, 0, 'run', 'aa…', {}, { clipped: true });
    const full = observation(1, 0, 'run', 'aaaa', {});
    const content = () => {
      const card = log.entries[0];
      return card && isCard(card) && card.observation?.content;
    };
    add(action(0), clipped);
    assert.equal(content(), 'aa…');
    add(full);
    assert.equal(content(), 'aaaa');
    add(clipped);
    assert.equal(content(), 'aaaa');
  });

  it('lets the last observation of an action count', () => {
    add(action(0), observation(1, 0, 'null'), observation(3, 0));
    assert.deepEqual(short(log.entries), ['0+3']);
    add(observation(1, 0, 'null'));
    assert.deepEqual(short(log.entries), ['0+3']);
  });

  it('starts a new generation below the old cards after a restart', () => {
    add(action(0), observation(1, 0), action(2));
    log.add('h', 'k', [action(0)]);
    assert.deepEqual(short(log.entries), ['0+1', '2 lost', 'restart', '0']);
    log.add('i', 'other', [action(0)]);
    assert.equal(short(log.entries)[4], 'switch');
    const keys = log.entries.map(({ key }) => key);
    assert.equal(new Set(keys).size, keys.length);
  });

  it('ignores a new generation without events', () => {
    add(action(0), observation(1, 0));
    log.add('h', 'k', []);
    assert.deepEqual(short(log.entries), ['0+1']);
    assert.equal(log.current?.id, 'h');
  });

  it('marks pending actions as lost when their runtime ends', () => {
    add(action(0), action(1, 'think', { thought: 'so' }));
    log.end();
    assert.deepEqual(short(log.entries), ['0 lost', '1']);
    add(observation(2, 0));
    assert.deepEqual(short(log.entries), ['0+2', '1']);
  });

  it('drops the oldest cards over the limit permanently', () => {
    log = new EventLog(3);
    for (let id = 0; id < 10; id += 2) {
      add(action(id), observation(id + 1, id));
    }
    assert.deepEqual(short(log.entries), ['4+5', '6+7', '8+9']);
    add(action(0), observation(1, 0), observation(3, 2));
    assert.deepEqual(short(log.entries), ['4+5', '6+7', '8+9']);
    assert.equal(log.current?.firstMissing, 10);
  });

  it('ignores a late observation of a dropped action', () => {
    log = new EventLog(2);
    add(action(0), action(1), action(2));
    add(observation(3, 0));
    assert.deepEqual(short(log.entries), ['1', '2']);
  });

  it('drops old generations first, and follows a smaller limit', () => {
    log = new EventLog(3);
    add(action(0), action(2));
    log.add('h', 'k', [action(0), action(1)]);
    assert.deepEqual(short(log.entries), ['2 lost', 'restart', '0', '1']);
    log.limit = 2;
    assert.deepEqual(short(log.entries), ['0', '1']);
    log.limit = 1;
    assert.deepEqual(short(log.entries), ['1']);
  });

  it('replaces changed cards and keeps the others identical', () => {
    add(action(0), action(1));
    const before = log.entries;
    add(observation(2, 1));
    assert.notEqual(log.entries, before);
    assert.equal(log.entries[0], before[0]);
    assert.notEqual(log.entries[1], before[1]);
  });
});
