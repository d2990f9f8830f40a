import type { CodeMirrorEditor } from '@jupyterlab/codemirror';

import { announce } from '../announce.js';
import type { ReviewedDocument } from './document.js';
import { EditorReview, hunkAt } from './editor.js';
import { hunkLabel, stopLabel } from './labels.js';
import { FILE_ID } from './model.js';
import {
  nextOf,
  ReviewView,
  type IBarHost,
  type ICurrentChange
} from './view.js';

/** Review of a text file in JupyterLab's editor. */
export class FileReviewView extends ReviewView {
  constructor(
    widget: IBarHost,
    document: ReviewedDocument,
    private readonly _editor: CodeMirrorEditor
  ) {
    super(widget, document);
    this._review = new EditorReview(_editor, {
      keep: hunk => document.keepHunk(FILE_ID, hunk),
      undo: hunk => document.undoHunk(FILE_ID, hunk)
    });
  }

  get current(): ICurrentChange | null {
    const view = this._editor.editor;
    const hunk = hunkAt(view, view.state.selection.main.head);
    return hunk ? { id: FILE_ID, hunk } : null;
  }

  step(direction: 1 | -1): void {
    const at = this._editor.editor.state.selection.main.head;
    const text = this.document.review.cell(FILE_ID)?.text;
    const hunks = text?.hunks ?? [];
    const next = nextOf(hunks, direction, ({ fromB, endB }) =>
      direction === 1 ? fromB - at : endB - at
    );
    if (text && next) {
      goTo(this._editor, next.fromB);
      const what = hunkLabel(text, next);
      announce(stopLabel(hunks.indexOf(next) + 1, hunks.length, what));
    }
  }

  undoAll(): void {
    this.document.undo(null, null);
  }

  protected refresh(): void {
    this._review.show(this.document.review.cell(FILE_ID)?.text ?? null);
  }

  protected clear(): void {
    this._review.show(null);
  }

  private readonly _review: EditorReview;
}

/** Put the cursor at a position of an editor, and show it. */
export function goTo(editor: CodeMirrorEditor, position: number): void {
  const view = editor.editor;
  const at = Math.min(position, view.state.doc.length);
  view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
  editor.focus();
}
