import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Review } from './model.js';
import { SharedKeeps, type IAwareness } from './shared.js';
import { changesBetween } from './text.js';

type States = Map<number, Record<string, unknown>>;

/** Awareness of one window; the windows of a test share their states. */
class Awareness implements IAwareness {
  constructor(
    readonly clientID: number,
    private readonly _states: States,
    private readonly _listeners: Set<() => void>
  ) {}

  getStates(): States {
    return this._states;
  }

  setLocalStateField(field: string, value: unknown): void {
    this._states.set(this.clientID, { [field]: value });
    this._listeners.forEach(listener => listener());
  }

  on(_: 'change', listener: () => void): void {
    this._listeners.add(listener);
  }

  off(_: 'change', listener: () => void): void {
    this._listeners.delete(listener);
  }
}

const BEFORE = 'one\n\n\n\ntwo';
const AFTER = 'ONE\n\n\n\nTWO';

/** Windows with the same changes of an agent: two hunks, and an added cell. */
function windows(): [Review, SharedKeeps][] {
  const [states, listeners] = [new Map(), new Set<() => void>()];
  return [1, 2].map(client => {
    const cell = { id: 'a', type: 'code', source: BEFORE };
    const review = new Review([cell]);
    const awareness = new Awareness(client, states, listeners);
    review.changeText('a', changesBetween(BEFORE, AFTER), AFTER, 'agent');
    const added = { id: 'b', type: 'code', source: 'b' };
    const cells = [{ ...cell, source: AFTER }, added];
    review.changeCells(cells, 'agent', () => null);
    return [review, new SharedKeeps(awareness, review)];
  });
}

describe('keeping in a shared document', () => {
  it('is for everybody', () => {
    const [[mine, keeps], [other]] = windows() as [
      [Review, SharedKeeps],
      [Review, SharedKeeps]
    ];
    assert.deepEqual([mine.count, other.count], [3, 3]);
    const hunk = mine.cell('a')!.text!.hunks[1]!;
    keeps.tellHunk('a', hunk);
    mine.keepHunk('a', hunk);
    assert.equal(other.cell('a')!.text!.base, 'one\n\n\n\nTWO');
    keeps.tell(null);
    assert.equal(other.isEmpty, true);
  });

  it('is not for changes that others do not see', () => {
    const [[mine, keeps], [other]] = windows() as [
      [Review, SharedKeeps],
      [Review, SharedKeeps]
    ];
    const later = `${AFTER}!`;
    other.changeText('a', changesBetween(AFTER, later), later, 'agent');
    keeps.tell(null);
    mine.keep(null);
    assert.deepEqual(
      other.cells.map(each => [each.id, each.count]),
      [['a', 2]]
    );
  });
});
