import { Widget } from '@lumino/widgets';

import { trans } from '../translation.js';
import { button } from '../button.js';
import { runsWhenLabel, runsWhenTitle } from '../changes/runs.js';
import { span } from './controls.js';
import type { ReviewedDocument } from './document.js';

/** Commands of the bar, which the document's view carries out. */
export interface IBarActions {
  keepAll(): void;
  undoAll(): void;
  step(direction: 1 | -1): void;
}

/** Bar above a document: how much agents changed, and decisions on all of it. */
export class ReviewBar extends Widget {
  constructor(
    private readonly _document: ReviewedDocument,
    actions: IBarActions
  ) {
    super();
    this.addClass('oh-ReviewBar');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Review of changes'));
    this._text = span('oh-ReviewBar-text', '');
    this._text.setAttribute('role', 'status');
    this._runs = span('oh-Badge oh-RunsWhen', '');
    this.node.append(
      this._text,
      this._runs,
      button(trans.__('Keep all'), trans.__('Keep all changes'), () =>
        actions.keepAll()
      ),
      button(trans.__('Undo all'), trans.__('Undo all changes'), () =>
        actions.undoAll()
      ),
      button(trans.__('Previous'), trans.__('Go to the previous change'), () =>
        actions.step(-1)
      ),
      button(trans.__('Next'), trans.__('Go to the next change'), () =>
        actions.step(1)
      )
    );
  }

  /** Show the current numbers. */
  refresh(): void {
    const text = summaryOf(this._document);
    if (this._text.textContent !== text) {
      this._text.textContent = text;
    }
    const { runsWhen, context } = this._document;
    this._runs.hidden = runsWhen === '';
    this._runs.textContent = runsWhen && runsWhenLabel(runsWhen);
    this._runs.title = runsWhenTitle(context.path, runsWhen);
  }

  /** The numbers as a text. */
  get summary(): string {
    return this._text.textContent ?? '';
  }

  private readonly _text: HTMLSpanElement;
  private readonly _runs: HTMLSpanElement;
}

/** Summarize the changes of a document in one line. */
function summaryOf({ review, isNotebook, agent }: ReviewedDocument): string {
  const count = review.count;
  const changes = trans._n('%1 change', '%1 changes', count);
  const name = agent || trans.__('an agent');
  if (!isNotebook) {
    return trans.__('%1 by %2', changes, name);
  }
  const cells = review.cells.length;
  const where = trans._n('%1 cell', '%1 cells', cells);
  return trans.__('%1 by %2 in %3', changes, name, where);
}
