import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { random } from '../testing.js';
import {
  applied,
  changesBetween,
  changesOf,
  document,
  ReviewedText
} from './text.js';

/** The text after an agent, or the person, has changed it to something else. */
function changed(text: ReviewedText, now: string): ReviewedText {
  return text.changed(changesBetween(text.now, now));
}

function typed(text: ReviewedText, at: number, insert: string): ReviewedText {
  return text.typed(changesOf([{ retain: at }, { insert }], text.now.length));
}

function reviewed(text: string): ReviewedText {
  return ReviewedText.between(text, text);
}

describe('ReviewedText', () => {
  it('has the text before the changes as its baseline', () => {
    const text = changed(reviewed('a\nb\nc'), 'a\nB\nc\nd');
    assert.equal(text.base, 'a\nb\nc');
    assert.equal(text.now, 'a\nB\nc\nd');
    assert.equal(text.hunks.length, 1);
  });

  it('adds what the person types to the baseline', () => {
    const text = changed(reviewed('x = 1\n'), 'x = 11\ny = 2\n');
    assert.equal(typed(text, 6, ' # mine').base, 'x = 1 # mine\n');
    assert.equal(typed(text, 0, '# mine\n').base, '# mine\nx = 1\n');
  });

  it('keeps together what the person types inside a change', () => {
    let text = changed(reviewed('total = 1'), 'sum = 2');
    for (const letter of ' # mine') {
      text = typed(text, text.now.length, letter);
    }
    assert.equal(text.now, 'sum = 2 # mine');
    assert.match(text.base, / # mine$/);
  });

  it('drops from the baseline what the person deletes', () => {
    const text = changed(reviewed('a\nb\n'), 'a\nb\nc\n');
    const change = changesOf([{ delete: 2 }], text.now.length);
    assert.equal(text.typed(change).base, 'b\n');
    const all = changesOf([{ delete: 6 }], text.now.length);
    assert.equal(text.typed(all).isChanged, false);
  });

  it('tells an undo of a change from an undo of what was typed', () => {
    const agents = changed(reviewed('a = 1'), 'a = 2');
    const both = typed(agents, 5, ' # mine');
    const back = both.undone(changesBetween(both.now, agents.now));
    assert.deepEqual([back.base, back.now], ['a = 1', 'a = 2']);
    const first = back.undone(changesBetween('a = 2', 'a = 1'));
    assert.equal(first.isChanged, false);
  });

  it('keeps or undoes hunks one by one', () => {
    const text = changed(reviewed('a\nb\nc\nd\ne'), 'A\nb\nc\nd\nE\nf');
    const [first, last] = text.hunks;
    assert.equal(text.kept(first!).base, 'A\nb\nc\nd\ne');
    assert.equal(applied(text.now, text.undoing(last!)), 'A\nb\nc\nd\ne');
  });

  it('ends at either text after all hunks, and loses nothing typed', () => {
    const choose = random(7);
    for (let round = 0; round < 400; round++) {
      let text = reviewed('one\ntwo\nthree\nfour\n'.slice(choose(19)));
      const words: string[] = [];
      for (let step = 0; step < 8; step++) {
        if (choose(2) === 0) {
          const word = `#p${step};`;
          words.push(word);
          text = typed(text, choose(text.now.length + 1), word);
        } else {
          text = changed(text, rewritten(text.now, step, words, choose));
        }
      }
      const found = (each: string) => words.filter(w => each.includes(w));
      // A word is gone if it was typed into another.
      assert.ok(found(text.now).every(word => text.base.includes(word)));
      let [kept, undone] = [text, text];
      while (kept.hunks.length > 0) {
        kept = kept.kept(kept.hunks[choose(kept.hunks.length)]!);
      }
      while (undone.hunks.length > 0) {
        const hunk = undone.hunks[choose(undone.hunks.length)]!;
        const now = applied(undone.now, undone.undoing(hunk));
        undone = ReviewedText.between(undone.base, now);
      }
      assert.deepEqual([kept.base, kept.now], [text.now, text.now]);
      assert.deepEqual([undone.base, undone.now], [text.base, text.base]);
    }
  });
});

/** Insert, replace or delete a line, but none that has a word. */
function rewritten(
  text: string,
  step: number,
  words: readonly string[],
  choose: (limit: number) => number
): string {
  const lines = text.split('\n');
  const at = choose(lines.length);
  const isTyped = words.some(word => lines[at]!.includes(word));
  const kind = isTyped ? 0 : choose(3);
  lines.splice(at, kind === 0 ? 0 : 1, ...(kind < 2 ? [`agent ${step}`] : []));
  return lines.join('\n');
}

describe('changesOf', () => {
  it('converts what Yjs reports', () => {
    const change = changesOf(
      [{ retain: 1 }, { insert: 'x\ny' }, { delete: 2 }, { insert: 'z' }],
      5
    );
    assert.equal(change.apply(document('abcde')).toString(), 'ax\nyzde');
  });
});
