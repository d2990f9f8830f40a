import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { changesBetween } from './text.js';
import { Review, type Author, type IReviewCell } from './model.js';

/** Cells of a notebook, and its review. */
class Document {
  cells: IReviewCell[];
  readonly review: Review;

  constructor(...sources: string[]) {
    this.cells = sources.map((source, n) => cell(`${n}`, source));
    this.review = new Review(this.cells);
  }

  write(id: string, source: string, author: Author = 'agent'): void {
    const at = this.cells.findIndex(each => each.id === id);
    const change = changesBetween(this.cells[at]!.source, source);
    this.cells[at] = { ...this.cells[at]!, source };
    this.review.changeText(id, change, source, author);
  }

  arrange(author: Author, ...cells: (string | IReviewCell)[]): void {
    this.cells = cells.map(each =>
      typeof each === 'string'
        ? (this.cells.find(({ id }) => id === each) ?? cell(each))
        : each
    );
    this.review.changeCells(this.cells, author, () => null);
  }

  /** Undo like the tab does. */
  undo(id: string | null): void {
    const { order, added, edits } = this.review.undoing(id);
    for (const [each, { source }] of edits) {
      this.write(each, source, 'review');
    }
    const known = [...added.values(), ...this.cells];
    this.arrange(
      'review',
      ...order.map(each => known.find(({ id }) => id === each)!)
    );
  }

  get state(): string {
    const cells = this.review.cells.map(each => {
      const { id, isAdded, isMoved, deleted, text } = each;
      const marks = `${isAdded ? '+' : ''}${deleted ? '-' : ''}${isMoved ? '>' : ''}`;
      return `${marks}${id}${text ? `:${text.base}` : ''}`;
    });
    return cells.join(' ');
  }

  get text(): string {
    return this.cells.map(({ source }) => source).join('|');
  }
}

function cell(id: string, source = id): IReviewCell {
  return { id, type: 'code', source };
}

describe('Review', () => {
  it('is empty without changes by agents', () => {
    const doc = new Document('a', 'b');
    doc.write('0', 'A', 'person');
    doc.arrange('person', '1', '0', 'new');
    assert.equal(doc.state, '');
    assert.equal(doc.review.isEmpty, true);
    assert.equal(doc.review.stored, null);
  });

  it('lists changed, added, deleted and moved cells', () => {
    const doc = new Document('a', 'b', 'c', 'd');
    doc.write('0', 'A');
    doc.arrange('agent', '0', 'new', '3', '1');
    assert.equal(doc.state, '0:a +new >1 -2');
    assert.equal(doc.review.count, 4);
  });

  it('undoes each kind, and everything', () => {
    for (const id of [null, 'each']) {
      const doc = new Document('a', 'b', 'c', 'd');
      doc.write('0', 'A');
      doc.arrange('agent', '0', 'new', '3', '1');
      if (id === null) {
        doc.undo(null);
      } else {
        for (const changed of doc.review.cells) {
          doc.undo(changed.id);
        }
      }
      assert.equal(doc.text, 'a|b|c|d');
      assert.equal(doc.state, '');
    }
  });

  it('keeps each kind, and everything', () => {
    const doc = new Document('a', 'b', 'c', 'd');
    doc.write('0', 'A');
    doc.arrange('agent', '0', 'new', '3', '1');
    doc.review.keep('new');
    doc.review.keep('2');
    assert.equal(doc.state, '0:a >1');
    doc.undo(null);
    assert.equal(doc.text, 'a|new|b|d');
    doc.write('1', 'B');
    doc.review.keep(null);
    assert.equal(doc.state, '');
  });

  it('leaves cells of the person where they are', () => {
    const doc = new Document('a', 'b');
    doc.arrange('agent', '1', '0', 'theirs');
    doc.arrange('person', '1', 'mine', '0', 'theirs');
    doc.undo(null);
    assert.deepEqual(new Set(doc.text.split('|')), new Set(['a', 'b', 'mine']));
    assert.equal(doc.state, '');
  });

  it('keeps what the person typed in an added cell', () => {
    const doc = new Document('a');
    doc.arrange('agent', '0', cell('new', 'agents'));
    doc.write('new', 'agents # mine', 'person');
    doc.undo('new');
    assert.equal(doc.text, 'a| # mine');
  });

  it('keeps what the person typed in a cell that an agent adds and deletes', () => {
    const doc = new Document('a', 'b');
    doc.arrange('agent', '0', cell('new', 'agents'), '1');
    doc.write('new', 'agents # mine', 'person');
    doc.arrange('agent', '0', '1');
    doc.undo(null);
    assert.equal(doc.text, 'a| # mine|b');
  });

  it('drops cells that the person deletes, and has them again after an undo', () => {
    const doc = new Document('a', 'b');
    doc.write('1', 'B');
    const before = doc.cells;
    doc.arrange('person', '0');
    assert.equal(doc.state, '');
    doc.arrange('undo', ...before);
    assert.equal(doc.state, '1:b');
  });

  it('follows an undo of what an agent did to cells', () => {
    const doc = new Document('a', 'b');
    const before = doc.cells;
    doc.arrange('agent', '1', 'new');
    doc.arrange('undo', ...before);
    assert.equal(doc.state, '');
    doc.arrange('agent', '1', '0');
    doc.arrange('undo', '0', '1');
    assert.equal(doc.state, '');
  });

  it('forgets a cell that an agent adds and deletes', () => {
    const doc = new Document('a');
    doc.arrange('agent', '0', 'new');
    doc.arrange('agent', '0');
    assert.equal(doc.review.isEmpty, true);
  });

  it('restores the type of a cell', () => {
    const doc = new Document('a', 'b');
    doc.arrange('agent', '0');
    doc.arrange('agent', '0', { ...cell('1', 'b'), type: 'markdown' });
    assert.equal(doc.review.cell('1')?.typeBefore, 'code');
    assert.equal(doc.review.undoing('1').edits.get('1')?.type, 'code');
  });

  it('marks outputs of changed cells until these are run', () => {
    const doc = new Document('a', 'b');
    doc.write('0', 'A');
    assert.equal(doc.review.cell('0')?.isStale, true);
    doc.review.run('0');
    assert.equal(doc.review.cell('0')?.isStale, false);
    doc.write('0', 'AA');
    assert.equal(doc.review.cell('0')?.isStale, true);
  });

  it('continues after a reload', () => {
    const doc = new Document('a', 'b', 'c');
    doc.write('0', 'A');
    doc.write('0', 'A # unsaved', 'person');
    doc.arrange('agent', '0', 'new', '2');
    const stored = JSON.parse(JSON.stringify(doc.review.stored));
    const review = new Review([cell('0', 'A'), cell('new'), cell('2', 'c')]);
    review.restore(stored);
    const [first, ...others] = review.cells;
    assert.equal(first?.text?.base, 'a');
    assert.deepEqual(
      others.map(({ id }) => id),
      ['1', 'new']
    );
  });
});
