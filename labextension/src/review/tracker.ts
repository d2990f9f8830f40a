import type { YFile, YNotebook } from '@jupyter/ydoc';
import type { ICell } from '@jupyterlab/nbformat';

import type { AgentActivity } from '../documents/agents.js';
import { applyMerge, setText } from '../documents/apply.js';
import type { INotebookMerge } from '../documents/cells.js';
import { FILE_ID, Review, type Author, type IReviewCell } from './model.js';
import type { IAwareness } from './shared.js';
import { changesOf, type IDelta } from './text.js';

/** Change of a shared type, as Yjs reports it. */
interface IYEvent {
  readonly target: IYType;
  readonly delta: readonly IDelta[];
  readonly keys?: ReadonlyMap<string, unknown>;
}

interface IYType {
  readonly parent: { get?(key: string): unknown } | null;
  get?(key: string): unknown;
  observeDeep(listener: YListener): void;
  unobserveDeep(listener: YListener): void;
}

interface IYTransaction {
  readonly local: boolean;
  readonly origin: unknown;
  /** Number of insertions by each client. */
  readonly beforeState: ReadonlyMap<number, number>;
  readonly afterState: ReadonlyMap<number, number>;
}

type YListener = (
  events: readonly IYEvent[],
  transaction: IYTransaction
) => void;

/** Follows an open document, and tells its review who changed what. */
export abstract class Tracker {
  constructor(
    protected readonly shared: YNotebook | YFile,
    private readonly _root: IYType,
    private readonly _agents: AgentActivity,
    cells: readonly IReviewCell[]
  ) {
    this.review = new Review(cells);
    this._root.observeDeep(this._onChange);
  }

  readonly review: Review;

  /** State of each window with this document. */
  get awareness(): IAwareness {
    return this.shared.awareness as unknown as IAwareness;
  }

  dispose(): void {
    this._root.unobserveDeep(this._onChange);
  }

  /** Attribute the changes that a function makes to an author. */
  as(author: Author, change: () => void): void {
    const outer = this._author;
    this._author = author;
    try {
      change();
    } finally {
      this._author = outer;
    }
  }

  /** Replace the text of a cell, or of the file, as an undoable step. */
  abstract merge(isAgents: boolean, merge: () => void): void;

  abstract setText(id: string, text: string): void;

  /** Undo changes. */
  abstract apply(merge: INotebookMerge, focused: string | null): void;

  protected abstract onEvent(event: IYEvent, author: Author): void;

  private readonly _onChange: YListener = (events, transaction) => {
    const author = this._author ?? this._authorOf(transaction);
    // Texts first: the order of cells is compared with texts that are known.
    const isRoot = ({ target }: IYEvent) => Number(target === this._root);
    for (const event of [...events].sort((a, b) => isRoot(a) - isRoot(b))) {
      this.onEvent(event, author);
    }
  };

  private _authorOf(transaction: IYTransaction): Author {
    if (transaction.local) {
      return isUndoManager(transaction.origin) ? 'undo' : 'person';
    }
    // Other people may undo an agent's change in their windows.
    return this._isPeople(transaction) ? 'undo' : 'agent';
  }

  /** In a shared document, everybody whose tab is connected has a name. */
  private _isPeople({ beforeState, afterState }: IYTransaction): boolean {
    const clients = [...afterState.keys()].filter(
      id => afterState.get(id) !== beforeState.get(id)
    );
    const states = this.shared.awareness.getStates();
    const { isWorking, signs } = this._agents;
    if (clients.length === 0) {
      return !isWorking;
    }
    const hasAgents = isWorking || signs > 0;
    return !hasAgents || clients.some(id => states.get(id)?.user !== undefined);
  }

  private _author: Author | null = null;
}

/** Follows the cells of a notebook. */
export class NotebookTracker extends Tracker {
  constructor(
    private readonly _notebook: YNotebook,
    agents: AgentActivity
  ) {
    const cells = _notebook.ydoc.getArray('cells') as unknown as IYType;
    super(_notebook, cells, agents, reviewCells(_notebook));
    this._cells = cells;
  }

  /** Merge a file; cells that it deletes are remembered with their outputs. */
  merge(isAgents: boolean, merge: () => void): void {
    if (isAgents) {
      this._contents = new Map(
        this._notebook.cells.map(cell => [cell.getId(), cell.toJSON() as ICell])
      );
    }
    try {
      this.as(mergeAuthor(isAgents), merge);
    } finally {
      this._contents = new Map();
    }
  }

  setText(id: string, text: string): void {
    const cell = this._notebook.cells.find(each => each.getId() === id);
    if (cell) {
      this.as('review', () => setText(cell, text));
    }
  }

  apply(merge: INotebookMerge, focused: string | null): void {
    this.as('review', () => applyMerge(this._notebook, merge, focused));
  }

  protected onEvent(event: IYEvent, author: Author): void {
    const { target, delta, keys } = event;
    if (target === this._cells) {
      this.review.changeCells(
        reviewCells(this._notebook),
        author,
        id => this._contents.get(id) ?? null
      );
      return;
    }
    const { parent } = target;
    const id = parent?.get?.('id');
    if (typeof id === 'string' && parent?.get?.('source') === target) {
      const source = String(target);
      const before = this.review.current(id)?.source ?? source;
      this.review.changeText(
        id,
        changesOf(delta, before.length),
        source,
        author
      );
    } else if (keys?.has('execution_count')) {
      this.review.run(String(target.get?.('id')));
    }
  }

  private readonly _cells: IYType;
  private _contents: ReadonlyMap<string, ICell> = new Map();
}

/** Follows a text file, which is reviewed like a cell. */
export class FileTracker extends Tracker {
  constructor(
    private readonly _file: YFile,
    agents: AgentActivity
  ) {
    const cell = { id: FILE_ID, type: 'file', source: _file.getSource() };
    super(_file, _file.ysource as unknown as IYType, agents, [cell]);
  }

  merge(isAgents: boolean, merge: () => void): void {
    this.as(mergeAuthor(isAgents), merge);
  }

  setText(_: string, text: string): void {
    this.as('review', () => setText(this._file, text));
  }

  apply({ edits }: INotebookMerge): void {
    const edit = edits.get(FILE_ID);
    if (edit) {
      this.setText(FILE_ID, edit.source);
    }
  }

  protected onEvent({ delta }: IYEvent, author: Author): void {
    const source = this._file.getSource();
    const before = this.review.current(FILE_ID)?.source ?? source;
    this.review.changeText(
      FILE_ID,
      changesOf(delta, before.length),
      source,
      author
    );
  }
}

function reviewCells(notebook: YNotebook): IReviewCell[] {
  return notebook.cells.map(cell => ({
    id: cell.getId(),
    type: cell.cell_type,
    source: cell.getSource()
  }));
}

/** Return the author of a merged file: a rewind undoes an agent's changes, like an undo here. */
function mergeAuthor(isAgents: boolean): Author {
  return isAgents ? 'agent' : 'undo';
}

function isUndoManager(origin: unknown): boolean {
  return typeof origin === 'object' && origin !== null && 'undoStack' in origin;
}
