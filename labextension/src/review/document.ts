import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { Signal } from '@lumino/signaling';

import type { AgentActivity } from '../documents/agents.js';
import { unifiedDiff } from './diff.js';
import { FILE_ID, type IReviewCell, type Review } from './model.js';
import { SharedKeeps } from './shared.js';
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

/** Changes that the person decided to keep, for the agents. */
export interface IKeepRecord {
  readonly path: string;
  readonly count: number;
}

/** Recipient of what the person decides. */
export interface IDecisions {
  undone(record: IUndoRecord): void;
  kept(record: IKeepRecord): void;
}

/** Open document under review, and what the person decides on its changes. */
export class ReviewedDocument {
  constructor(
    readonly context: DocumentRegistry.Context,
    readonly tracker: NotebookTracker | FileTracker,
    private readonly _agents: AgentActivity,
    private readonly _store: ReviewStore,
    private readonly _decisions: IDecisions,
    private readonly _askRunsWhen: (before: string) => Promise<string>
  ) {
    this._path = context.path;
    const stored = this._store.load(this._path);
    if (stored) {
      this.review.restore(stored);
      this._agent = stored.agent;
    }
    this._count = this.review.count;
    this._shared = new SharedKeeps(tracker.awareness, this.review);
    this.review.changed.connect(this._onChanged, this);
    this._updateRunsWhen();
    this._agents.acted.connect(this._onActed, this);
    context.pathChanged.connect(this._onPathChanged, this);
  }

  /** Emitted when the agent's name, or what runs the file, becomes known after a change. */
  readonly factsChanged = new Signal<this, void>(this);

  /** Name of the agent that made the last change; "" if unknown. */
  get agent(): string {
    return this._agent;
  }

  /** What a person does that runs the changed file; "" if nothing. */
  get runsWhen(): string {
    return this._runsWhen;
  }

  get review(): Review {
    return this.tracker.review;
  }

  get isNotebook(): boolean {
    return this.review.ids[0] !== FILE_ID;
  }

  dispose(): void {
    this._shared.dispose();
    this.tracker.dispose();
    Signal.clearData(this.review);
    Signal.clearData(this);
  }

  keepHunk(id: string, hunk: Hunk): void {
    this._shared.tellHunk(id, hunk);
    this._kept(() => this.review.keepHunk(id, hunk));
  }

  /** Keep all changes of a cell, or of the document. */
  keep(id: string | null): void {
    this._shared.tell(id);
    this._kept(() => this.review.keep(id));
  }

  private _kept(keep: () => void): void {
    const before = this.review.count;
    keep();
    const count = before - this.review.count;
    if (count > 0) {
      this._decisions.kept({ path: this._path, count });
    }
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
    this._decisions.undone({
      path: this._path,
      count,
      cells: this.isNotebook ? cells : [],
      diff
    });
  }

  private get _cells(): IReviewCell[] {
    return this.review.ids.map(id => this.review.current(id)!);
  }

  private _onChanged(): void {
    if (this.review.count > this._count) {
      this._agent = this._agents.name;
      this._awaitsName = !this._agents.isWorking;
      this._updateRunsWhen();
    }
    this._count = this.review.count;
    this._save();
  }

  private _onActed(): void {
    // Tools whose actions are recorded later have named clients.
    if (this._awaitsName && this._agents.name !== '') {
      this._awaitsName = false;
      this._agent = this._agents.name;
      this._save();
      this.factsChanged.emit();
    }
  }

  /** Ask what runs the changed file; notebooks run only by their own buttons. */
  private _updateRunsWhen(): void {
    const text = this.isNotebook ? null : this.review.cell(FILE_ID)?.text;
    if (!text) {
      return;
    }
    void this._askRunsWhen(text.base).then(when => {
      if (when !== this._runsWhen) {
        this._runsWhen = when;
        this.factsChanged.emit();
      }
    });
  }

  private _save(): void {
    const stored = this.review.stored;
    this._store.save(this._path, stored && { ...stored, agent: this._agent });
  }

  private _onPathChanged(_: unknown, path: string): void {
    this._store.save(this._path, null);
    this._path = path;
    this._save();
  }

  private readonly _shared: SharedKeeps;
  private _path: string;
  private _agent = '';
  private _runsWhen = '';
  private _count: number;
  /** Whether the action that made the last change is not recorded yet. */
  private _awaitsName = false;
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
