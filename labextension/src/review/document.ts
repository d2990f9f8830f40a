import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { Signal } from '@lumino/signaling';

import { unifiedDiff } from './diff.js';
import { FILE_ID, type IReviewCell, type Review } from './model.js';
import type { ReviewStore } from './store.js';
import { applied, type Hunk } from './text.js';
import type { FileTracker, NotebookTracker } from './tracker.js';

/** Undo of changes by the person, for the log. */
export interface IUndoRecord {
  /** Path below the server's root. */
  readonly path: string;
  readonly count: number;
  /** Positions of the cells, from 0; empty for a text file. */
  readonly cells: readonly number[];
  readonly diff: string;
}

/** Open document under review, and what the person decides on its changes. */
export class ReviewedDocument {
  constructor(
    readonly context: DocumentRegistry.Context,
    readonly tracker: NotebookTracker | FileTracker,
    private readonly _store: ReviewStore,
    private readonly _onUndo: (record: IUndoRecord) => void
  ) {
    this._path = context.path;
    const stored = this._store.load(this._path);
    if (stored) {
      this.review.restore(stored);
    }
    this.review.changed.connect(this._save, this);
    context.pathChanged.connect(this._onPathChanged, this);
  }

  get review(): Review {
    return this.tracker.review;
  }

  get isNotebook(): boolean {
    return this.review.ids[0] !== FILE_ID;
  }

  dispose(): void {
    this.tracker.dispose();
    Signal.clearData(this.review);
    Signal.clearData(this);
  }

  keepHunk(id: string, hunk: Hunk): void {
    this.review.keepHunk(id, hunk);
  }

  /** Keep all changes of a cell, or of the document. */
  keep(id: string | null): void {
    this.review.keep(id);
  }

  undoHunk(id: string, hunk: Hunk): void {
    const text = this.review.cell(id)?.text;
    if (text) {
      this._recorded([id], 1, () =>
        this.tracker.setText(id, applied(text.now, text.undoing(hunk)))
      );
    }
  }

  /** Undo all changes of a cell, or of the document. */
  undo(id: string | null, focused: string | null): void {
    const changes = this.review.cells.filter(
      each => id === null || each.id === id
    );
    const ids = changes.map(each => each.id);
    const count = changes.reduce((sum, each) => sum + each.count, 0);
    const merge = this.review.undoing(id);
    this._recorded(ids, count, () => {
      this.tracker.apply(merge, focused);
      for (const each of changes) {
        if (each.isAdded && merge.edits.has(each.id)) {
          // What the person typed in it stays.
          this.review.keep(each.id);
        }
      }
    });
  }

  private _recorded(
    ids: readonly string[],
    count: number,
    undo: () => void
  ): void {
    const before = this._cells;
    undo();
    const after = this._cells;
    const cells = ids.map(id => positionOf(id, after, before));
    const diff = unifiedDiff(this._path, before, after);
    this._onUndo({
      path: this._path,
      count,
      cells: this.isNotebook ? cells : [],
      diff
    });
  }

  private get _cells(): IReviewCell[] {
    return this.review.ids.map(id => this.review.current(id)!);
  }

  private _save(): void {
    this._store.save(this._path, this.review.stored);
  }

  private _onPathChanged(_: unknown, path: string): void {
    this._store.save(this._path, null);
    this._path = path;
    this._save();
  }

  private _path: string;
}

/** Return the position of a cell, or the one that a removed cell had. */
function positionOf(
  id: string,
  after: readonly IReviewCell[],
  before: readonly IReviewCell[]
): number {
  const find = (cells: readonly IReviewCell[]) =>
    cells.findIndex(each => each.id === id);
  return find(after) < 0 ? find(before) : find(after);
}
