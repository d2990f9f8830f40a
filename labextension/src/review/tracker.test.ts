import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';

import { YFile, YNotebook } from '@jupyter/ydoc';
import type { ICell, INotebookContent } from '@jupyterlab/nbformat';
import { applyUpdate, encodeStateAsUpdate } from 'yjs';

import { AgentActivity } from '../documents/agents.js';
import { fileCell, mergeNotebook } from '../documents/cells.js';
import { applyMerge, openCells, setText } from '../documents/apply.js';
import { FILE_ID } from './model.js';
import { FileTracker, NotebookTracker } from './tracker.js';

/** Documents have timers. */
const open: { dispose(): void }[] = [];
afterEach(() => open.splice(0).forEach(each => each.dispose()));

class Tab {
  readonly agents = new AgentActivity();
  readonly notebook: YNotebook;
  readonly tracker: NotebookTracker;

  constructor(...sources: string[]) {
    const cells = sources.map((source, n) => code(`${n}`, source));
    const data = { cells, metadata: {}, nbformat: 4, nbformat_minor: 5 };
    this.notebook = YNotebook.create({
      disableDocumentWideUndoRedo: true,
      data: data as unknown as INotebookContent
    });
    open.push(this.notebook);
    this.tracker = new NotebookTracker(this.notebook, this.agents);
  }

  /** Merge a file that an agent wrote. */
  write(...cells: ICell[]): void {
    this._merge(true, cells);
  }

  /** Merge a file that another program wrote. */
  writeAsOther(...cells: ICell[]): void {
    this._merge(false, cells);
  }

  private _merge(isAgents: boolean, cells: readonly ICell[]): void {
    const open = openCells(this.notebook);
    const file = cells.map(cell => fileCell(cell, String(cell.id)));
    const merge = mergeNotebook(open, open, file, () => 'copy');
    this.tracker.merge(isAgents, () => applyMerge(this.notebook, merge, null));
  }

  undo(id: string | null): void {
    this.tracker.apply(this.tracker.review.undoing(id), null);
  }

  get text(): string {
    return this.notebook.cells.map(cell => cell.getSource()).join('|');
  }

  get count(): number {
    return this.tracker.review.count;
  }
}

function code(id: string, source: string): ICell {
  const cell = { id, cell_type: 'code', source, metadata: {} };
  return { ...cell, outputs: [], execution_count: null } as ICell;
}

describe('NotebookTracker', () => {
  it('reviews what an agent wrote, and not what the person does', () => {
    const tab = new Tab('a', 'b', 'c');
    tab.notebook.cells[0]!.updateSource(1, 1, ' # mine');
    tab.notebook.moveCell(0, 2);
    assert.equal(tab.count, 0);
    tab.write(code('2', 'C'), code('new', 'd'), code('0', 'a # mine'));
    assert.equal(tab.count, 3);
    tab.undo(null);
    assert.equal(tab.text, 'b|c|a # mine');
    assert.equal(tab.tracker.review.isEmpty, true);
  });

  it('restores a deleted cell with its outputs', () => {
    const output = { output_type: 'stream', name: 'stdout', text: 'out' };
    const tab = new Tab('a');
    tab.notebook.insertCell(1, {
      ...code('1', 'b'),
      outputs: [output]
    } as never);
    tab.write(code('0', 'a'));
    tab.undo('1');
    assert.equal(tab.text, 'a|b');
    const cell = tab.notebook.cells[1]!.toJSON() as ICell;
    assert.deepEqual(cell.outputs, [output]);
  });

  it('ends when a file without the changes of agents is restored', () => {
    const tab = new Tab('rate = 2', 'a\nb\nc', 'gone', 'moved');
    tab.write(
      code('3', 'moved'),
      code('0', 'rate = 3  # percent'),
      code('1', 'A / 100\nb\nround(c)'),
      code('new', 'added')
    );
    assert.equal(tab.count, 6);
    tab.writeAsOther(
      code('0', 'rate = 2'),
      code('1', 'a\nb\nc'),
      code('2', 'gone'),
      code('3', 'moved')
    );
    assert.equal(tab.text, 'rate = 2|a\nb\nc|gone|moved');
    assert.equal(tab.count, 0);
  });

  it('does not review what another window writes into a change', () => {
    const tab = new Tab('one = 1', 'two = 2');
    tab.write(code('0', 'one = 11'), code('1', 'two = 2'));
    tab.writeAsOther(code('0', 'one = 11 # mine'), code('1', 'two = 22'));
    assert.equal(tab.count, 1);
    tab.undo(null);
    assert.equal(tab.text, 'one = 1 # mine|two = 22');
  });

  it('follows the undo of each step', () => {
    const tab = new Tab('a = 1', 'b');
    const [first] = tab.notebook.cells;
    tab.write(code('0', 'a = 2'), code('1', 'b'), code('new', 'c'));
    first!.updateSource(5, 5, ' # mine');
    assert.equal(tab.tracker.review.cell('0')?.text?.base, 'a = 1 # mine');
    first!.undo();
    assert.equal(tab.tracker.review.cell('0')?.text?.base, 'a = 1');
    first!.undo();
    assert.equal(tab.tracker.review.cell('0'), null);
    tab.notebook.undo();
    assert.equal(tab.text, 'a = 1|b');
    assert.equal(tab.count, 0);
    tab.notebook.redo();
    assert.equal(tab.count, 1);
  });

  it('undoes a hunk as a step that can be undone', () => {
    const tab = new Tab('a = 1');
    tab.write(code('0', 'a = 2'));
    tab.undo('0');
    assert.equal(tab.text, 'a = 1');
    tab.notebook.cells[0]!.undo();
    assert.equal(tab.text, 'a = 2');
  });

  it('moves cells back', () => {
    const tab = new Tab('a', 'b', 'c');
    tab.write(code('2', 'c'), code('0', 'a'), code('1', 'b'));
    assert.equal(tab.count, 1);
    tab.undo(null);
    assert.equal(tab.text, 'a|b|c');
    assert.equal(tab.tracker.review.isEmpty, true);
  });

  it('tells agents from people in a shared document', () => {
    const tab = new Tab('a', 'b');
    const remote = new YNotebook({ disableDocumentWideUndoRedo: true });
    open.push(remote);
    const receive = () =>
      applyUpdate(tab.notebook.ydoc, encodeStateAsUpdate(remote.ydoc));
    applyUpdate(remote.ydoc, encodeStateAsUpdate(tab.notebook.ydoc));

    // A colleague, whose tab is connected.
    const { states } = tab.notebook.awareness;
    states.set(remote.ydoc.clientID, { user: { name: 'Ada' } });
    tab.agents.beginSaving('Claude');
    tab.agents.requestEnded();
    remote.cells[0]!.updateSource(1, 1, ' # Ada');
    receive();
    assert.equal(tab.count, 0);

    // The server, for an agent.
    states.delete(remote.ydoc.clientID);
    remote.cells[1]!.updateSource(0, 1, 'B');
    receive();
    assert.equal(tab.tracker.review.cell('1')?.text?.base, 'b');
    remote.deleteCell(0);
    receive();
    assert.equal(tab.count, 1);
    tab.agents.beginSaving('Claude');
    remote.deleteCell(0);
    receive();
    assert.ok(tab.tracker.review.cell('1')?.deleted);
  });

  it('follows what others undo in a shared document', () => {
    const tab = new Tab('one\n\n\n\ntwo', 'b');
    tab.write(code('0', 'ONE\n\n\n\nTWO'), code('1', 'b'), code('2', 'added'));
    assert.equal(tab.count, 3);
    const remote = new YNotebook({ disableDocumentWideUndoRedo: true });
    open.push(remote);
    applyUpdate(remote.ydoc, encodeStateAsUpdate(tab.notebook.ydoc));
    remote.cells[0]!.updateSource(0, 3, 'one');
    remote.deleteCell(2);
    applyUpdate(tab.notebook.ydoc, encodeStateAsUpdate(remote.ydoc));
    assert.equal(tab.text, 'one\n\n\n\nTWO|b');
    assert.equal(tab.count, 1);
    assert.equal(tab.tracker.review.cell('0')!.text!.hunks.length, 1);
  });

  it('is run when a cell gets another number', () => {
    const tab = new Tab('a');
    tab.write(code('0', 'A'));
    assert.equal(tab.tracker.review.cell('0')?.isStale, true);
    const cell = tab.notebook.cells[0] as unknown as {
      execution_count: number;
    };
    cell.execution_count = 2;
    assert.equal(tab.tracker.review.cell('0')?.isStale, false);
  });
});

describe('FileTracker', () => {
  it('reviews a text file', () => {
    const file = new YFile();
    open.push(file);
    file.setSource('a\nb\n');
    const tracker = new FileTracker(file, new AgentActivity());
    tracker.merge(true, () => setText(file, 'a\nB\nc\n'));
    file.updateSource(0, 0, '# mine\n');
    assert.equal(tracker.review.count, 1);
    tracker.apply(tracker.review.undoing(null));
    assert.equal(file.getSource(), '# mine\na\nb\n');
    assert.equal(tracker.review.cell(FILE_ID), null);
  });
});
