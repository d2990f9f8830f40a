/** Changes by agents that the person has neither kept nor undone, in one document. */
import type { ICell } from '@jupyterlab/nbformat';
import type { ChangeSet } from '@codemirror/state';
import { Signal } from '@lumino/signaling';

import {
  fileCell,
  placed,
  type ICellEdit,
  type IFileCell,
  type INotebookMerge
} from '../documents/cells.js';
import { followed, inserted, movedIds } from './order.js';
import { changesBetween, ReviewedText, type Hunk } from './text.js';

/** Id under which a text file is reviewed like the only cell of a notebook. */
export const FILE_ID = '';

/** Who changed a document; `undo` is an undo or redo by the person, of any change. */
export type Author = 'agent' | 'person' | 'undo' | 'review';

/** Cell as far as it is reviewed. */
export interface IReviewCell {
  readonly id: string;
  readonly type: string;
  readonly source: string;
}

/** Cell with changes by agents. */
export interface ICellChanges {
  readonly id: string;
  readonly isAdded: boolean;
  readonly isMoved: boolean;
  /** Previous type if it differs; "" otherwise. */
  readonly typeBefore: string;
  /** Null if its text is as before. */
  readonly text: ReviewedText | null;
  /** Whether it has not been run since its text changed. */
  readonly isStale: boolean;
  /** Content of a deleted cell. */
  readonly deleted: ICell | null;
  /** Number of changes that are counted. */
  readonly count: number;
}

/** State that can be stored. */
export interface IStoredReview {
  readonly order: readonly string[];
  readonly cells: readonly IReviewCell[];
  readonly base: Readonly<Record<string, string>>;
  readonly added: readonly string[];
  readonly types: Readonly<Record<string, string>>;
  readonly deleted: Readonly<Record<string, ICell>>;
  readonly ran: readonly string[];
}

/** Baseline of a document, and what agents have changed since. */
export class Review {
  /** @param cells - The document's current cells. */
  constructor(cells: readonly IReviewCell[]) {
    this._setCells(cells);
    this._order = this._ids;
  }

  /** Emitted after every change of the review, also of the text of a reviewed cell. */
  readonly changed = new Signal<this, void>(this);

  /** Continue a stored review; what has changed in the document since counts as the person's. */
  restore(stored: IStoredReview): void {
    const current = [...this._cells.values()];
    this._setCells(stored.cells);
    this._order = [...stored.order];
    this._added = new Set(stored.added);
    this._types = new Map(Object.entries(stored.types));
    this._deleted = new Map(Object.entries(stored.deleted));
    this._ran = new Set(stored.ran);
    for (const [id, base] of Object.entries(stored.base)) {
      const source = this._cells.get(id)?.source;
      if (source !== undefined) {
        this._texts.set(id, ReviewedText.between(base, source));
      }
    }
    for (const { id, source } of current) {
      const before = this._cells.get(id)?.source;
      if (before !== undefined && before !== source) {
        this.changeText(id, changesBetween(before, source), source, 'person');
      }
    }
    this.changeCells(current, 'person', () => null);
  }

  /** State to be stored; null if there is nothing to review. */
  get stored(): IStoredReview | null {
    if (this.isEmpty) {
      return null;
    }
    const texts = [...this._texts].map(([id, { base }]) => [id, base] as const);
    return {
      order: this._order,
      cells: [...this._cells.values()],
      base: Object.fromEntries(texts),
      added: [...this._added],
      types: Object.fromEntries(this._types),
      deleted: Object.fromEntries(this._deleted),
      ran: [...this._ran]
    };
  }

  get isEmpty(): boolean {
    return (
      this._texts.size === 0 &&
      this._added.size === 0 &&
      this._deleted.size === 0 &&
      this._types.size === 0 &&
      this._moved.size === 0
    );
  }

  /** Current ids in order. */
  get ids(): readonly string[] {
    return this._ids;
  }

  /** Return a cell of the document. */
  current(id: string): IReviewCell | undefined {
    return this._cells.get(id);
  }

  /** Ids of all cells in order, with the changes of deleted ones where they were. */
  get all(): readonly (string | ICellChanges)[] {
    const isDeleted = (id: string) => this._deleted.has(id);
    return placed(this._ids, this._order, isDeleted).map(id =>
      isDeleted(id) ? this.cell(id)! : id
    );
  }

  /** Changed cells in order, with deleted ones where they were. */
  get cells(): readonly ICellChanges[] {
    return this.all
      .map(each => (typeof each === 'string' ? this.cell(each) : each))
      .filter(each => each !== null);
  }

  /** Changes of one cell, or null. */
  cell(id: string): ICellChanges | null {
    const deleted = this._deleted.get(id) ?? null;
    const isAdded = this._added.has(id);
    const isMoved = this._moved.has(id);
    const typeBefore = this._types.get(id) ?? '';
    const text = isAdded ? null : (this._texts.get(id) ?? null);
    const count =
      Number(deleted !== null) +
      Number(isAdded) +
      Number(isMoved) +
      Number(typeBefore !== '') +
      (text?.hunks.length ?? 0);
    const isStale = text !== null && !this._ran.has(id);
    return count === 0
      ? null
      : { id, isAdded, isMoved, typeBefore, text, isStale, deleted, count };
  }

  /** Number of changes. */
  get count(): number {
    return this.cells.reduce((sum, { count }) => sum + count, 0);
  }

  /** Record a change of a cell's text. */
  changeText(
    id: string,
    change: ChangeSet,
    source: string,
    author: Author
  ): void {
    const cell = this._cells.get(id);
    if (!cell || change.empty) {
      return;
    }
    const known = this._texts.get(id);
    this._cells.set(id, { ...cell, source });
    if (known) {
      this._setText(id, revised(known, change, source, author));
    } else if (author === 'agent') {
      const text = ReviewedText.between(cell.source, cell.source);
      this._setText(id, text.changed(change));
    }
    if (author === 'agent') {
      this._ran.delete(id);
    }
    if (known || author === 'agent') {
      this.changed.emit();
    }
  }

  /**
   * Record added, deleted and moved cells.
   * @param contentOf - Returns the content that a deleted cell had.
   */
  changeCells(
    cells: readonly IReviewCell[],
    author: Author,
    contentOf: (id: string) => ICell | null
  ): void {
    const before = this._ids;
    const was = this._cells;
    const wasEmpty = this.isEmpty;
    this._setCells(cells);
    const removed = before.filter(id => !this._cells.has(id));
    const appeared = this._ids.filter(id => !was.has(id));
    const keepsBase = author === 'agent' || author === 'review';
    for (const id of removed) {
      const isUndone = author === 'undo' && this._isAgents(id);
      if (keepsBase || isUndone) {
        this._remove(was.get(id)!, contentOf(id), before);
      } else {
        this._forget(id);
      }
    }
    for (const id of appeared) {
      this._appear(id, keepsBase);
    }
    if (!keepsBase) {
      this._follow(before, author === 'undo');
    }
    this._moved = movedIds(this._order, this._ids);
    if (!(wasEmpty && this.isEmpty)) {
      this.changed.emit();
    }
  }

  /** Record that a cell has been run. */
  run(id: string): void {
    if (this._texts.has(id) && !this._ran.has(id)) {
      this._ran.add(id);
      this.changed.emit();
    }
  }

  keepHunk(id: string, hunk: Hunk): void {
    const text = this._texts.get(id);
    if (text) {
      this._setText(id, text.kept(hunk));
      this.changed.emit();
    }
  }

  /** Keep all changes of a cell, or of all cells. */
  keep(id: string | null): void {
    if (id === null) {
      this._order = this._ids;
      this._texts.clear();
      this._added.clear();
      this._deleted.clear();
      this._types.clear();
      this._deletedBefore.clear();
      this._gone.clear();
    } else {
      this._keepCell(id);
    }
    this._moved = movedIds(this._order, this._ids);
    this.changed.emit();
  }

  /** Return what undoes all changes of a cell, or of all cells. */
  undoing(id: string | null): INotebookMerge {
    const changes = this.cells.filter(each => id === null || each.id === id);
    const gone = new Set(
      changes
        .filter(each => each.isAdded && this._baseOf(each.id) === '')
        .map(each => each.id)
    );
    const added = new Map<string, IFileCell>();
    const edits = new Map<string, ICellEdit>();
    const moved = new Set<string>();
    for (const { id: each, deleted, isMoved } of changes) {
      if (deleted) {
        added.set(each, fileCell(deleted, each));
      } else if (!gone.has(each)) {
        edits.set(each, this._undoingCell(each));
        if (isMoved) {
          moved.add(each);
        }
      }
    }
    const staying = this._ids.filter(
      each => !gone.has(each) && !moved.has(each)
    );
    return {
      order: placed(
        staying,
        this._order,
        each => moved.has(each) || added.has(each)
      ),
      added,
      restored: new Set(added.keys()),
      moved,
      edits,
      conflicts: []
    };
  }

  private _undoingCell(id: string): ICellEdit {
    const cell = this._cells.get(id)!;
    return {
      source: this._baseOf(id),
      type: this._types.get(id) ?? cell.type,
      metadata: new Map(),
      rest: null
    };
  }

  private _baseOf(id: string): string {
    return this._texts.get(id)?.base ?? this._cells.get(id)?.source ?? '';
  }

  private _keepCell(id: string): void {
    if (this._deleted.delete(id)) {
      this._order = this._order.filter(each => each !== id);
    } else if (this._added.has(id) || this._moved.has(id)) {
      this._added.delete(id);
      this._order = inserted(this._order, id, this._ids);
    }
    this._texts.delete(id);
    this._types.delete(id);
    this._deletedBefore.delete(id);
  }

  private _setText(id: string, text: ReviewedText): void {
    if (text.isChanged || this._added.has(id)) {
      this._texts.set(id, text);
    } else {
      this._texts.delete(id);
    }
  }

  private _setCells(cells: readonly IReviewCell[]): void {
    this._cells = new Map(cells.map(cell => [cell.id, cell]));
    this._ids = cells.map(({ id }) => id);
  }

  private _isAgents(id: string): boolean {
    return this._added.has(id) || this._deletedBefore.has(id);
  }

  /** Delete a cell from the document, but not from the baseline. */
  private _remove(
    { id, type, source }: IReviewCell,
    content: ICell | null,
    before: readonly string[]
  ): void {
    const base = this._texts.get(id)?.base ?? source;
    const isAdded = this._added.has(id);
    const cell_type = this._types.get(id) ?? type;
    this._forget(id);
    if (isAdded && base === '') {
      return;
    }
    if (isAdded) {
      // The person has typed in it.
      this._order = inserted(this._order, id, before);
    }
    const known = content ?? this._deletedBefore.get(id) ?? { metadata: {} };
    const deleted = { ...known, id, cell_type, source: base } as ICell;
    this._deleted.set(id, deleted);
    this._deletedBefore.set(id, deleted);
  }

  /** Find out whether a cell that appears is part of the baseline. */
  private _appear(id: string, isAgents: boolean): void {
    const { source, type } = this._cells.get(id)!;
    const deleted = this._deleted.get(id);
    const gone = this._gone.get(id);
    if (deleted) {
      this._deleted.delete(id);
      const base = String(deleted.source);
      this._setText(id, ReviewedText.between(base, source));
      if (deleted.cell_type !== type) {
        this._types.set(id, deleted.cell_type);
      }
    } else if (gone && !isAgents) {
      if (gone.isAdded) {
        this._added.add(id);
      }
      this._setText(id, ReviewedText.between(gone.base, source));
    } else if (isAgents) {
      this._added.add(id);
      this._texts.set(id, ReviewedText.between('', source));
    }
    this._gone.delete(id);
  }

  private _forget(id: string): void {
    const base = this._texts.get(id)?.base;
    if (base !== undefined) {
      this._gone.set(id, { base, isAdded: this._added.has(id) });
    }
    this._added.delete(id);
    this._texts.delete(id);
    this._types.delete(id);
  }

  /** Move the baseline's cells like the person's; an undo may restore the baseline instead. */
  private _follow(before: readonly string[], isUndo: boolean): void {
    const order = followed(
      this._order,
      before,
      this._ids,
      id => this._added.has(id) || this._deleted.has(id)
    );
    const known = new Set(order);
    const unchanged = this._order.filter(id => known.has(id));
    const isRestored =
      isUndo &&
      unchanged.length === order.length &&
      movedIds(unchanged, this._ids).size < movedIds(order, this._ids).size;
    this._order = isRestored ? unchanged : order;
  }

  private _ids: readonly string[] = [];
  private _cells: Map<string, IReviewCell> = new Map();
  /** Ids of the baseline in order, with those of deleted cells. */
  private _order: readonly string[];
  private _moved: ReadonlySet<string> = new Set();
  private readonly _texts = new Map<string, ReviewedText>();
  private _added = new Set<string>();
  private _types = new Map<string, string>();
  private _deleted = new Map<string, ICell>();
  private _ran = new Set<string>();
  /** Cells that agents deleted at some time: an undo may bring them back or remove them again. */
  private readonly _deletedBefore = new Map<string, ICell>();
  /** Reviewed cells that are gone, but may return by an undo or the second step of a move. */
  private readonly _gone = new Map<string, IGone>();
}

/** Reviewed cell that the document lacks. */
interface IGone {
  readonly base: string;
  readonly isAdded: boolean;
}

function revised(
  text: ReviewedText,
  change: ChangeSet,
  source: string,
  author: Author
): ReviewedText {
  switch (author) {
    case 'agent':
      return text.changed(change);
    case 'person':
      return text.typed(change);
    case 'undo':
      return text.undone(change);
    case 'review':
      return ReviewedText.between(text.base, source);
  }
}
