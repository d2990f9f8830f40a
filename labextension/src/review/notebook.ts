import type { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { announce } from '../announce.js';
import { trans } from '../translation.js';
import { button } from '../button.js';
import { row, span } from './controls.js';
import type { ReviewedDocument } from './document.js';
import { EditorReview, hunkAt } from './editor.js';
import { goTo } from './file.js';
import { hunkLabel, stopLabel } from './labels.js';
import type { ICellChanges } from './model.js';
import type { Hunk } from './text.js';
import { nextOf, ReviewView, type ICurrentChange } from './view.js';

type Notebook = NotebookPanel['content'];
type Cell = Notebook['widgets'][number];

/** Place to which Next and Previous go. */
interface IStop {
  readonly id: string;
  /** Position of the cell that shows it. */
  readonly index: number;
  readonly hunk: Hunk | null;
  readonly isDeleted: boolean;
}

/** Longest part of a deleted cell that is shown. */
const MAX_TITLE_CHARS = 80;

/** Review of a notebook: diffs in the cells, and rows above them. */
export class NotebookReviewView extends ReviewView {
  constructor(
    private readonly _panel: NotebookPanel,
    document: ReviewedDocument
  ) {
    super(_panel, document);
    // Cells far from the visible part are created when they are scrolled to.
    this._notebook.cellInViewportChanged.connect(this.schedule, this);
  }

  override dispose(): void {
    this._notebook.cellInViewportChanged.disconnect(this.schedule, this);
    super.dispose();
  }

  get current(): ICurrentChange | null {
    const deleted = focusedRow(this._notebook.node);
    if (deleted !== null) {
      return { id: deleted, hunk: null };
    }
    const cell = this._notebook.activeCell;
    const changes = cell && this.document.review.cell(idOf(cell));
    if (!changes) {
      return null;
    }
    const editor = this._notebook.mode === 'edit' ? editorOf(cell) : null;
    const hunk = editor && hunkAt(editor.editor, headOf(editor));
    return { id: changes.id, hunk: hunk ?? null };
  }

  step(direction: 1 | -1): void {
    const deleted = focusedRow(this._notebook.node);
    const stops = this._stops();
    const here = stops.findIndex(stop => stop.isDeleted && stop.id === deleted);
    const next =
      here >= 0
        ? stops.at((here + direction) % stops.length)
        : nextOf(stops, direction, stop => this._compare(stop));
    if (next) {
      void this._show(next);
      const what = this._describe(next);
      announce(stopLabel(stops.indexOf(next) + 1, stops.length, what));
    }
  }

  undoAll(id: string | null): void {
    const notebook = this._notebook;
    const typed = notebook.mode === 'edit' ? notebook.activeCell : null;
    this.document.undo(id, typed && idOf(typed));
  }

  protected refresh(): void {
    const { review } = this.document;
    const { above, below } = this._deletedPlaces();
    const { widgets } = this._notebook;
    widgets.forEach((cell, index) => {
      const changes = review.cell(idOf(cell));
      const isLast = index === widgets.length - 1;
      this._decorate(
        cell,
        changes,
        above.get(idOf(cell)) ?? [],
        isLast ? below : []
      );
    });
  }

  protected clear(): void {
    for (const cell of this._notebook.widgets) {
      this._decorate(cell, null, [], []);
    }
  }

  /** Find the cells above which deleted ones were; others were at the end. */
  private _deletedPlaces() {
    const above = new Map<string, ICellChanges[]>();
    let below: ICellChanges[] = [];
    for (const changes of this.document.review.all) {
      if (typeof changes !== 'string') {
        below.push(changes);
      } else if (below.length > 0) {
        above.set(changes, below);
        below = [];
      }
    }
    return { above, below };
  }

  private _decorate(
    cell: Cell,
    changes: ICellChanges | null,
    above: readonly ICellChanges[],
    below: readonly ICellChanges[]
  ): void {
    cell.toggleClass('oh-mod-added', changes?.isAdded ?? false);
    cell.toggleClass('oh-mod-stale', changes?.isStale ?? false);
    const header = cell.node.querySelector(':scope > .jp-CellHeader');
    const footer = cell.node.querySelector(':scope > .jp-CellFooter');
    const own = changes ? [changes] : [];
    setRows(header, [...above, ...own], each => this._row(each));
    setRows(footer, below, each => this._row(each));
    const text = changes?.text ?? null;
    const editor = editorOf(cell);
    if (editor && (text || this._editors.has(editor))) {
      this._editorReview(editor, idOf(cell)).show(text);
    }
    this._unrender(cell, text !== null);
  }

  /** Show the source of a changed Markdown cell. */
  private _unrender(cell: Cell, isChanged: boolean): void {
    if (!('rendered' in cell)) {
      return;
    }
    const isKnown = this._unrendered.has(cell);
    if (isChanged && !isKnown) {
      this._unrendered.add(cell);
      cell.rendered = false;
    } else if (!isChanged && isKnown) {
      this._unrendered.delete(cell);
      const isTyping =
        this._notebook.mode === 'edit' && this._notebook.activeCell === cell;
      cell.rendered = !isTyping;
    }
  }

  private _editorReview(editor: CodeMirrorEditor, id: string): EditorReview {
    let review = this._editors.get(editor);
    if (!review) {
      review = new EditorReview(editor, {
        keep: hunk => this.document.keepHunk(id, hunk),
        undo: hunk => this.document.undoHunk(id, hunk)
      });
      this._editors.set(editor, review);
    }
    return review;
  }

  private _row(changes: ICellChanges): HTMLElement {
    const { id, deleted } = changes;
    const label = labelOf(changes);
    const title = deleted ? String(deleted.source).trim() : '';
    const line = title.split('\n')[0]!.slice(0, MAX_TITLE_CHARS);
    const node = row(
      deleted ? 'oh-mod-deleted' : '',
      line === '' ? label : `${label}: ${line}`,
      span('oh-Review-kind', label),
      span('oh-Review-title', line),
      button(trans.__('Keep'), trans.__('Keep the changes of this cell'), () =>
        this.document.keep(id)
      ),
      button(trans.__('Undo'), trans.__('Undo the changes of this cell'), () =>
        this.undoAll(id)
      )
    );
    node.title = title;
    node.dataset.ohReview = id;
    return node;
  }

  /** List the places of changes in order. */
  private _stops(): readonly IStop[] {
    const { review } = this.document;
    const { ids } = review;
    let index = 0;
    return review.all.flatMap((each): IStop[] => {
      if (typeof each !== 'string') {
        const shown = Math.min(index, ids.length - 1);
        return [{ id: each.id, index: shown, hunk: null, isDeleted: true }];
      }
      const at = index++;
      const changes = review.cell(each);
      const stop = { id: each, index: at, hunk: null, isDeleted: false };
      return changes?.text
        ? changes.text.hunks.map(hunk => ({ ...stop, hunk }))
        : changes
          ? [stop]
          : [];
    });
  }

  private _describe({ id, index, hunk, isDeleted }: IStop): string {
    const changes = this.document.review.cell(id);
    const text = changes?.text;
    const what = !changes
      ? ''
      : text && hunk
        ? hunkLabel(text, hunk)
        : labelOf(changes);
    return isDeleted ? what : trans.__('Cell %1. %2', index + 1, what);
  }

  /** Compare a stop with the place of the person: negative if it is above. */
  private _compare({ index, hunk, isDeleted }: IStop): number {
    const { activeCellIndex, activeCell, mode } = this._notebook;
    const isSame = index === activeCellIndex && !isDeleted;
    if (!isSame || mode !== 'edit' || !hunk) {
      const shift = isDeleted ? -0.5 : 0;
      const isUnread = isSame && hunk !== null && mode !== 'edit';
      return index + shift - activeCellIndex + Number(isUnread) / 4;
    }
    const editor = activeCell && editorOf(activeCell);
    const head = editor ? headOf(editor) : 0;
    return hunk.fromB > head ? 1 : hunk.endB < head ? -1 : 0;
  }

  private async _show({ id, index, hunk, isDeleted }: IStop): Promise<void> {
    const notebook = this._notebook;
    const cell = notebook.widgets[index];
    if (!cell) {
      return;
    }
    await notebook.scrollToItem(index, 'smart').catch(() => undefined);
    await cell.ready;
    if (isDeleted) {
      this.refresh();
      const rows = notebook.node.querySelectorAll<HTMLElement>(ROWS);
      const found = [...rows].find(each => each.dataset.ohReview === id);
      found?.querySelector<HTMLElement>('button')?.focus();
      return;
    }
    notebook.activeCellIndex = index;
    const editor = editorOf(cell);
    if (hunk && editor) {
      this.refresh();
      notebook.mode = 'edit';
      goTo(editor, hunk.fromB);
    } else {
      notebook.mode = 'command';
      notebook.node.focus();
    }
  }

  private get _notebook(): Notebook {
    return this._panel.content;
  }

  private readonly _editors = new Map<CodeMirrorEditor, EditorReview>();
  private readonly _unrendered = new WeakSet<Cell>();
}

const ROWS = '.oh-Review-row';

function idOf(cell: Cell): string {
  return cell.model.sharedModel.getId();
}

function editorOf(cell: Cell): CodeMirrorEditor | null {
  return (cell.editor as CodeMirrorEditor | null) ?? null;
}

function headOf(editor: CodeMirrorEditor): number {
  return editor.editor.state.selection.main.head;
}

/** Return the id of the cell whose row has the focus; null if none has. */
function focusedRow(node: HTMLElement): string | null {
  const focused = document.activeElement?.closest<HTMLElement>(ROWS);
  return focused && node.contains(focused)
    ? (focused.dataset.ohReview ?? null)
    : null;
}

/** Show rows in a cell's header or footer, and keep those that are shown already. */
function setRows(
  parent: Element | null,
  changes: readonly ICellChanges[],
  make: (changes: ICellChanges) => HTMLElement
): void {
  const shown = parent?.querySelector<HTMLElement>('.oh-Review-rows') ?? null;
  const key = changes.map(each => `${each.id} ${labelOf(each)}`).join('\n');
  if (!parent || (shown?.dataset.ohKey ?? '') === key) {
    return;
  }
  shown?.remove();
  if (changes.length > 0) {
    const rows = document.createElement('div');
    rows.className = 'oh-Review-rows';
    rows.dataset.ohKey = key;
    rows.append(...changes.map(make));
    parent.append(rows);
  }
}

function labelOf({
  deleted,
  isAdded,
  isMoved,
  typeBefore,
  text
}: ICellChanges): string {
  if (deleted) {
    return trans.__('Deleted cell');
  }
  if (isAdded) {
    return trans.__('Added cell');
  }
  const count = text?.hunks.length ?? 0;
  const parts = [
    ...(isMoved ? [trans.__('Moved')] : []),
    ...(typeBefore ? [trans.__('Was %1', typeBefore)] : []),
    ...(count > 0 ? [trans._n('%1 change', '%1 changes', count)] : [])
  ];
  return parts.join(', ');
}
