import { Panel, type Widget } from '@lumino/widgets';

import { announce } from '../announce.js';
import { trans } from '../translation.js';
import { ReviewBar } from './bar.js';
import type { ReviewedDocument } from './document.js';
import type { Hunk } from './text.js';

/** Change at which the person is: a hunk, or all changes of a cell if it is null. */
export interface ICurrentChange {
  readonly id: string;
  readonly hunk: Hunk | null;
}

/** Widget with space for a bar above its content. */
export interface IBarHost extends Widget {
  readonly contentHeader: Panel;
}

/** Review of an open document, as the person sees it. */
export abstract class ReviewView {
  constructor(
    protected readonly widget: IBarHost,
    readonly document: ReviewedDocument
  ) {
    this.document.review.changed.connect(this.schedule, this);
    this.document.factsChanged.connect(this._refreshBar, this);
    this.schedule();
  }

  /** Stop showing changes, and restore the document's usual look. */
  dispose(): void {
    this._isDisposed = true;
    this.document.review.changed.disconnect(this.schedule, this);
    this.document.factsChanged.disconnect(this._refreshBar, this);
    if (!this.widget.isDisposed) {
      this.clear();
    }
    this._bar?.dispose();
  }

  /** Change at the cursor, or null. */
  abstract readonly current: ICurrentChange | null;

  /** Go to the next or previous change. */
  abstract step(direction: 1 | -1): void;

  keep(): void {
    const current = this.current;
    if (current?.hunk) {
      this.document.keepHunk(current.id, current.hunk);
    } else if (current) {
      this.document.keep(current.id);
    }
  }

  undo(): void {
    const current = this.current;
    if (current?.hunk) {
      this.document.undoHunk(current.id, current.hunk);
    } else if (current) {
      this.undoAll(current.id);
    }
  }

  /** Undo all changes of a cell, or of the document. */
  abstract undoAll(id: string | null): void;

  /** Update what is shown, once the current change is complete: editors update step by step. */
  protected schedule(): void {
    if (!this._isScheduled) {
      this._isScheduled = true;
      queueMicrotask(() => {
        this._isScheduled = false;
        if (!this._isDisposed && !this.widget.isDisposed) {
          this._update();
        }
      });
    }
  }

  /** Show the changes in the content. */
  protected abstract refresh(): void;

  protected abstract clear(): void;

  private _update(): void {
    this.refresh();
    const isShown = this._bar !== null;
    if (this.document.review.count === 0) {
      this._bar?.dispose();
      this._bar = null;
      if (isShown) {
        this._announce(trans.__('No changes left to review'));
      }
      return;
    }
    this._bar ??= this._addBar();
    this._bar.refresh();
    if (!isShown) {
      this._announce(this._bar.summary);
    }
  }

  /** Have screen readers say what the bar's own region cannot, as it comes and goes. */
  private _announce(text: string): void {
    if (this.widget.isVisible) {
      announce(text);
    }
  }

  private _refreshBar(): void {
    this._bar?.refresh();
  }

  private _addBar(): ReviewBar {
    const bar = new ReviewBar(this.document, {
      keepAll: () => this.document.keep(null),
      undoAll: () => this.undoAll(null),
      step: direction => this.step(direction)
    });
    this.widget.contentHeader.addWidget(bar);
    return bar;
  }

  private _bar: ReviewBar | null = null;
  private _isScheduled = false;
  private _isDisposed = false;
}

/** Return the item after or before a place, around the ends. */
export function nextOf<T>(
  items: readonly T[],
  direction: 1 | -1,
  compare: (item: T) => number
): T | undefined {
  return direction === 1
    ? (items.find(item => compare(item) > 0) ?? items[0])
    : (items.filter(item => compare(item) < 0).at(-1) ?? items.at(-1));
}
