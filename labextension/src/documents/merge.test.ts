import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { ICell } from '@jupyterlab/nbformat';

import { random } from '../testing.js';
import {
  fileCell,
  identified,
  mergeNotebook,
  stayingIds,
  type ICellState,
  type IFileCell,
  type INotebookMerge
} from './cells.js';
import { markedText, mergedText, mergeText, textEdits } from './text.js';

function cell(id: string, source = id, more: Partial<ICell> = {}): IFileCell {
  return fileCell({ cell_type: 'code', metadata: {}, source, ...more }, id);
}

function counter(): () => string {
  let count = 0;
  return () => `new${++count}`;
}

function merge(
  base: readonly ICellState[],
  ours: readonly ICellState[],
  theirs: readonly IFileCell[]
): INotebookMerge {
  return mergeNotebook(base, ours, theirs, counter());
}

/** The sources of the merged notebook. */
function sources(merged: INotebookMerge, ours: readonly ICellState[]) {
  return merged.order.map(
    id =>
      merged.added.get(id)?.source ??
      merged.edits.get(id)?.source ??
      ours.find(each => each.id === id)!.source
  );
}

describe('mergeText', () => {
  it('merges changes of both sides that do not touch', () => {
    const pieces = mergeText('a\nb\nc\nd\n', 'A\nb\nc\nd\n', 'a\nb\nc\nD\n');
    assert.equal(mergedText(pieces), 'A\nb\nc\nD\n');
  });

  it('keeps both versions of what both changed', () => {
    const pieces = mergeText('a\nb', 'a\nmine', 'a\ntheirs');
    assert.equal(mergedText(pieces), null);
    assert.equal(
      markedText(pieces, 'tab', 'file'),
      'a\n<<<<<<< tab\nmine\n=======\ntheirs\n>>>>>>> file\n'
    );
  });

  it('takes equal changes once', () => {
    assert.equal(mergedText(mergeText('a', 'b', 'b')), 'b');
  });
});

describe('textEdits', () => {
  it('turn any text into another', () => {
    const next = random(7);
    const text = () =>
      Array.from({ length: next(12) }, () => 'abc\n\n'[next(5)]).join('');
    for (let n = 0; n < 500; n++) {
      const [from, to] = [text(), text()];
      const made = textEdits(from, to).reduce(
        (now, { start, end, value }) =>
          now.slice(0, start) + value + now.slice(end),
        from
      );
      assert.equal(made, to);
    }
  });

  it('change only what differs', () => {
    assert.deepEqual(textEdits('one\ntwo\n', 'one\ntwao\n'), [
      { start: 6, end: 6, value: 'a' }
    ]);
  });
});

describe('mergeNotebook', () => {
  const base = [cell('a'), cell('b'), cell('c')];

  it('takes the agent’s cells, edits, moves and deletions', () => {
    const theirs = [cell('c'), cell('x'), cell('a', 'a2')];
    const merged = merge(base, base, theirs);
    assert.deepEqual(merged.order, ['c', 'x', 'a']);
    assert.deepEqual(sources(merged, base), ['c', 'x', 'a2']);
    assert.deepEqual(merged.conflicts, []);
  });

  it('keeps the person’s cells, edits, moves and deletions', () => {
    const ours = [cell('c'), cell('mine'), cell('a', 'a1')];
    const theirs = [...base, cell('x')];
    const merged = merge(base, ours, theirs);
    assert.deepEqual(sources(merged, ours), ['c', 'x', 'mine', 'a1']);
  });

  it('keeps both versions of a cell that both changed', () => {
    const ours = [cell('a', 'mine'), cell('b'), cell('c')];
    const theirs = [cell('a', 'theirs'), cell('b'), cell('c')];
    const merged = merge(base, ours, theirs);
    assert.deepEqual(sources(merged, ours), ['mine', 'theirs', 'b', 'c']);
    assert.deepEqual(merged.conflicts, ['a']);
  });

  it('deletes no cell that the other side changed', () => {
    const ours = [cell('b', 'mine'), cell('c')];
    const theirs = [cell('a', 'theirs'), cell('c')];
    const merged = merge(base, ours, theirs);
    assert.deepEqual(sources(merged, ours), ['theirs', 'mine', 'c']);
  });

  it('takes outputs unless the open notebook has others', () => {
    const out = (text: string) => ({
      outputs: [{ output_type: 'stream', name: 'stdout', text }]
    });
    const theirs = [cell('a', 'a', out('1')), cell('b', 'b', out('2'))];
    const ours = [cell('a'), cell('b', 'b', out('3'))];
    const merged = merge([cell('a'), cell('b')], ours, theirs);
    assert.equal(merged.edits.get('a')?.rest, theirs[0]);
    assert.equal(merged.edits.get('b')?.rest, null);
  });

  it('takes the outputs of the later of two runs', () => {
    const ran = (execution_count: number) =>
      cell('a', 'a', { outputs: [], execution_count });
    const rest = (ours: number, theirs: number) =>
      merge([ran(1)], [ran(ours)], [ran(theirs)]).edits.get('a')?.rest?.count;
    assert.equal(rest(2, 3), 3);
    assert.equal(rest(3, 2), undefined);
  });

  it('joins streams as JupyterLab shows them', () => {
    const stream = (name: string, text: unknown) =>
      ({ output_type: 'stream', name, text }) as never;
    const outputs = [
      stream('stdout', ['a\n', 'b\n']),
      stream('stdout', 'c\n'),
      stream('stderr', 'd\n')
    ];
    assert.deepEqual(cell('a', 'a', { outputs }).outputs, [
      stream('stdout', 'a\nb\nc\n'),
      stream('stderr', 'd\n')
    ]);
  });

  it('keeps outputs that an edit of the text has dropped', () => {
    const out = { outputs: [{ output_type: 'stream', text: '1' }] };
    const base = [cell('a', 'a', out)];
    const merged = merge(base, base, [cell('a', 'b')]);
    assert.equal(merged.edits.get('a')?.source, 'b');
    assert.equal(merged.edits.get('a')?.rest, null);
    const cleared = merge(base, base, [cell('a', 'a')]);
    assert.notEqual(cleared.edits.get('a')?.rest, null);
  });

  it('takes the count of a cell that ran without outputs', () => {
    const base = [cell('a', 'a', { execution_count: 6 })];
    const merged = merge(base, base, [cell('a', 'b', { execution_count: 2 })]);
    assert.equal(merged.edits.get('a')?.rest?.count, 2);
  });

  it('ignores different notations of equal content', () => {
    const stream = { output_type: 'stream', name: 'stdout' };
    const one = cell('a', 'x', { outputs: [{ ...stream, text: 'p\nq' }] });
    const lists = fileCell(
      {
        cell_type: 'code',
        metadata: { trusted: true },
        source: ['x'],
        outputs: [{ name: 'stdout', text: ['p\n', 'q'], output_type: 'stream' }]
      },
      'a'
    );
    assert.equal(merge([one], [one], [lists]).edits.size, 0);
  });

  it('loses nothing in any interleaving', () => {
    for (let seed = 1; seed <= 400; seed++) {
      const next = random(seed);
      const start = Array.from({ length: 1 + next(6) }, (_, n) =>
        cell(`${n}`, `line ${n}`)
      );
      const written = new Set<string>();
      const change = (who: string) => {
        const cells = [...start];
        for (let n = 0; n < 1 + next(5); n++) {
          const at = next(cells.length + 1);
          const word = `${who}${n}`;
          const kind = next(3);
          if (kind === 0 || at === cells.length) {
            cells.splice(at, 0, cell(word));
            written.add(word);
          } else if (kind === 1) {
            cells[at] = cell(cells[at]!.id, `${cells[at]!.source}\n${word}`);
            written.add(word);
          } else {
            cells.splice(next(cells.length), 0, ...cells.splice(at, 1));
          }
        }
        return cells;
      };
      const [ours, theirs] = [change('p'), change('t')];
      const merged = merge(start, ours, theirs);
      const all = sources(merged, ours).join('\n').split('\n');
      for (const word of written) {
        assert.ok(all.includes(word), `seed ${seed}: ${word} is lost`);
      }
      assert.equal(new Set(merged.order).size, merged.order.length);
    }
  });
});

describe('identified', () => {
  it('matches the cells of old notebooks', () => {
    const base = [cell('1', 'a'), cell('2', 'b'), cell('3', 'c')];
    const raw = ['a', 'x', 'b2', 'c'].map(source => ({
      cell_type: 'code',
      metadata: {},
      source
    }));
    const ids = identified(raw, base, counter()).map(({ id }) => id);
    assert.deepEqual(ids, ['1', '2', 'new1', '3']);
  });
});

it('the edited cell stays in place, and others move around it', () => {
  const from = ['a', 'b', 'c', 'd'];
  const to = ['b', 'c', 'd', 'a'];
  assert.deepEqual([...stayingIds(from, to, null)], ['b', 'c', 'd']);
  assert.deepEqual([...stayingIds(from, to, 'a')], ['a']);
  assert.deepEqual([...stayingIds(from, to, 'c')], ['b', 'c', 'd']);
  assert.deepEqual([...stayingIds(from, ['d'], 'a')], ['d']);
});
