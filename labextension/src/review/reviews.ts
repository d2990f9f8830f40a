import type { YFile, YNotebook } from '@jupyter/ydoc';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { Widget } from '@lumino/widgets';

import type { OpenDocuments } from '../documents/documents.js';
import {
  ReviewedDocument,
  type IKeepRecord,
  type IUndoRecord
} from './document.js';
import { FileReviewView } from './file.js';
import { NotebookReviewView } from './notebook.js';
import type { ReviewStore } from './store.js';
import { FileTracker, NotebookTracker } from './tracker.js';
import type { IBarHost, ReviewView } from './view.js';

type Context = DocumentRegistry.Context;

/** Reviews of all open documents. */
export class Reviews {
  constructor(
    private readonly _documents: OpenDocuments,
    private readonly _store: ReviewStore,
    private readonly _onUndo: (context: Context, record: IUndoRecord) => void,
    private readonly _onKeep: (context: Context, record: IKeepRecord) => void,
    private readonly _askRunsWhen: (
      context: Context,
      before: string
    ) => Promise<string>
  ) {
    this._documents.onMerge = (context, isAgents, merge) => {
      const document = this._known.get(context);
      if (document) {
        document.tracker.merge(isAgents, merge);
      } else {
        merge();
      }
    };
  }

  get isEnabled(): boolean {
    return this._isEnabled;
  }
  set isEnabled(isEnabled: boolean) {
    if (isEnabled !== this._isEnabled) {
      this._isEnabled = isEnabled;
      for (const [widget, context] of this._widgets) {
        if (isEnabled) {
          this._start(widget, context);
        } else {
          this._stop(widget, context);
        }
      }
    }
  }

  /** Follow a widget of a document. */
  add(widget: Widget, context: Context): void {
    if (this._widgets.has(widget)) {
      return;
    }
    void context.ready.then(() => {
      if (widget.isDisposed) {
        return;
      }
      this._widgets.set(widget, context);
      widget.disposed.connect(() => this._remove(widget, context));
      if (this._isEnabled) {
        this._start(widget, context);
      }
    });
  }

  /** Return the review in a widget. */
  viewOf(widget: Widget | null): ReviewView | null {
    return (widget && this._views.get(widget)) ?? null;
  }

  /** Keep all changes of a document, because the person has saved it. */
  keepAll(context: Context): void {
    this._known.get(context)?.keep(null);
  }

  private _start(widget: Widget, context: Context): void {
    const document = this._known.get(context) ?? this._open(context);
    if (!document) {
      return;
    }
    this._known.set(context, document);
    const view = makeView(widget, document);
    if (view) {
      this._views.set(widget, view);
    } else {
      this._stop(widget, context);
    }
  }

  private _open(context: Context): ReviewedDocument | null {
    const tracker = makeTracker(context, this._documents);
    return (
      tracker &&
      new ReviewedDocument(
        context,
        tracker,
        this._documents.agents,
        this._store,
        {
          undone: record => this._onUndo(context, record),
          kept: record => this._onKeep(context, record)
        },
        before => this._askRunsWhen(context, before)
      )
    );
  }

  private _stop(widget: Widget, context: Context): void {
    this._views.get(widget)?.dispose();
    this._views.delete(widget);
    const isShown = [...this._views.values()].some(
      ({ document }) => document.context === context
    );
    if (!isShown) {
      this._known.get(context)?.dispose();
      this._known.delete(context);
    }
  }

  private _remove(widget: Widget, context: Context): void {
    this._widgets.delete(widget);
    this._stop(widget, context);
  }

  private _isEnabled = false;
  private readonly _widgets = new Map<Widget, Context>();
  private readonly _known = new Map<Context, ReviewedDocument>();
  private readonly _views = new Map<Widget, ReviewView>();
}

/** Follow a notebook or text file; return null for others. */
function makeTracker(
  { model }: Context,
  { agents }: OpenDocuments
): NotebookTracker | FileTracker | null {
  const shared: unknown = model.sharedModel;
  if (typeof shared !== 'object' || shared === null) {
    return null;
  }
  if ('cells' in shared) {
    return new NotebookTracker(shared as YNotebook, agents);
  }
  return 'ysource' in shared ? new FileTracker(shared as YFile, agents) : null;
}

/** Show a review in a widget with cells or an editor; return null for others. */
function makeView(
  widget: Widget,
  document: ReviewedDocument
): ReviewView | null {
  const content = 'content' in widget ? widget.content : null;
  if (typeof content !== 'object' || content === null) {
    return null;
  }
  if ('activeCell' in content) {
    return new NotebookReviewView(widget as NotebookPanel, document);
  }
  return 'editor' in content
    ? new FileReviewView(
        widget as IBarHost,
        document,
        content.editor as CodeMirrorEditor
      )
    : null;
}
