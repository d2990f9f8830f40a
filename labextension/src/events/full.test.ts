import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';

import { action, observation } from '../testing.js';
import { isCard, type ICard } from './card.js';
import { FullCards } from './full.js';
import { EventLog } from './log.js';

const SHORT = { clipped: true };

describe('FullCards', () => {
  let log: EventLog;
  let full: FullCards;
  beforeEach(() => {
    log = new EventLog();
    full = new FullCards(
      ({ generation }, events) => log.shorten(generation, events),
      2500
    );
    for (let id = 0; id < 6; id += 2) {
      const answer = observation(id + 1, id, 'run', 'a…', {}, SHORT);
      log.add('g', 'k', [action(id), answer]);
    }
  });
  const cards = (): readonly ICard[] => log.entries.filter(isCard);
  const lengths = () => cards().map(card => card.observation?.content.length);
  const complete = (index: number) => {
    const card = cards()[index]!;
    const short = card.observation!;
    const whole = { ...short, content: 'a'.repeat(1000), clipped: false };
    log.add('g', 'k', [whole]);
    full.add(card, [short], [whole]);
  };

  it('clips the oldest cards again', () => {
    [0, 1, 2].forEach(complete);
    assert.deepEqual(lengths(), [2, 1000, 1000]);
    assert.equal(cards()[0]!.observation?.clipped, true);
    complete(0);
    assert.deepEqual(lengths(), [1000, 2, 1000]);
  });

  it('keeps open cards and the last one', () => {
    const [first, second] = cards();
    full.open(first!);
    full.open(first!);
    full.open(second!);
    [0, 1, 2].forEach(complete);
    assert.deepEqual(lengths(), [1000, 1000, 1000]);
    full.close(first!);
    assert.deepEqual(lengths(), [1000, 1000, 1000]);
    full.close(first!);
    assert.deepEqual(lengths(), [2, 1000, 1000]);
  });
});
