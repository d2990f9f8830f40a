import {
  getChunks,
  getOriginalDoc,
  originalDocChangeEffect,
  unifiedMergeView
} from '@codemirror/merge';
import { Compartment } from '@codemirror/state';
import type { EditorView } from '@codemirror/view';
import type { CodeMirrorEditor } from '@jupyterlab/codemirror';

import { trans } from '../translation.js';
import { button } from '../button.js';
import {
  changesBetween,
  DIFF_CONFIG,
  type Hunk,
  type ReviewedText
} from './text.js';

/** Decisions on a hunk. */
export interface IHunkActions {
  keep(hunk: Hunk): void;
  undo(hunk: Hunk): void;
}

/** Shows the changes of a text in its editor. */
export class EditorReview {
  constructor(
    private readonly _editor: CodeMirrorEditor,
    private readonly _actions: IHunkActions
  ) {
    this._editor.injectExtension(this._compartment.of([]));
  }

  /** Show changes, or none. */
  show(text: ReviewedText | null): void {
    const view = this._editor.editor;
    const isShown = getChunks(view.state) !== null;
    if (text === null) {
      if (isShown) {
        view.dispatch({ effects: this._compartment.reconfigure([]) });
      }
    } else if (!isShown) {
      const extension = this._extension(text.base);
      view.dispatch({ effects: this._compartment.reconfigure(extension) });
    } else {
      const shown = getOriginalDoc(view.state).toString();
      if (shown !== text.base) {
        const changes = changesBetween(shown, text.base);
        const effects = originalDocChangeEffect(view.state, changes);
        view.dispatch({ effects });
      }
    }
  }

  private _extension(original: string) {
    return unifiedMergeView({
      original,
      diffConfig: DIFF_CONFIG,
      mergeControls: type => this._button(type)
    });
  }

  private _button(type: 'accept' | 'reject'): HTMLElement {
    const isKeep = type === 'accept';
    const node: HTMLElement = button(
      isKeep ? trans.__('Keep') : trans.__('Undo'),
      isKeep ? trans.__('Keep this change') : trans.__('Undo this change'),
      () => {
        const view = this._editor.editor;
        const hunk = hunkAt(view, view.posAtDOM(node));
        if (hunk) {
          (isKeep ? this._actions.keep : this._actions.undo)(hunk);
        }
      }
    );
    return node;
  }

  private readonly _compartment = new Compartment();
}

/** Return the hunk at a position of an editor. */
export function hunkAt(view: EditorView, position: number): Hunk | undefined {
  return getChunks(view.state)?.chunks.find(
    ({ fromB, endB }) => fromB <= position && endB >= position
  );
}
