import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Widget, type PanelLayout } from '@lumino/widgets';

import { panelOf } from '../cells/notebook.js';
import { CommandIDs } from '../ids.js';
import { button } from '../button.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import { errorOf } from './notebook.js';

/** Class of notebooks with a runtime, in which the buttons are visible. */
const READY_CLASS = 'oh-mod-runtime';

/** Buttons below the errors of cells; they are no output that the notebook keeps. */
export class ErrorBars {
  /**
   * @param run - Executes a command for the cell of an id.
   */
  constructor(
    runtime: IOhRuntime,
    private readonly _notebooks: INotebookTracker,
    private readonly _run: (command: string, cell: string) => void
  ) {
    runtime.currentChanged.connect((_, events) => this._watch(events));
    this._watch(runtime.current);
  }

  /** Follow a notebook until it is closed. */
  private _watch(events: IKernelEvents | null): void {
    const panel = panelOf(this._notebooks, events);
    if (!events || !panel || this._watched.has(events)) {
      return;
    }
    this._watched.add(events);
    const onState = () =>
      panel.toggleClass(READY_CLASS, events.state === 'ready');
    events.changed.connect(onState);
    onState();
    void panel.context.ready.then(() => {
      panel.content.model?.cells.changed.connect(() => this._scan(panel));
      this._scan(panel);
    });
  }

  private _scan(panel: NotebookPanel): void {
    for (const cell of panel.content.widgets) {
      if (cell.model.type === 'code' && !this._cells.has(cell)) {
        this._cells.add(cell);
        const { outputs } = cell.model as ICodeCellModel;
        outputs.changed.connect(() => this._refresh(cell));
        this._refresh(cell);
      }
    }
  }

  private _refresh(cell: Cell): void {
    const bar = this._bars.get(cell);
    const hasError = errorOf(cell.model as ICodeCellModel) !== null;
    if (!hasError) {
      bar?.dispose();
      this._bars.delete(cell);
    } else if (!bar) {
      this._bars.set(cell, this._add(cell));
    }
  }

  private _add(cell: Cell): Widget {
    const bar = new Widget();
    bar.addClass('oh-ErrorBar');
    const { id } = cell.model;
    bar.node.append(
      button(
        trans.__('Fix this error'),
        trans.__('Let an agent fix the error of this cell'),
        () => this._run(CommandIDs.fixError, id)
      ),
      button(
        trans.__('Explain'),
        trans.__('Let an agent explain this cell and its error'),
        () => this._run(CommandIDs.explainCell, id)
      )
    );
    // A cell that is not drawn yet has no layout for its parts.
    void cell.ready.then(() => {
      if (!bar.isDisposed && !cell.isDisposed) {
        (cell.layout as PanelLayout).addWidget(bar);
      }
    });
    return bar;
  }

  private readonly _watched = new WeakSet<IKernelEvents>();
  private readonly _cells = new WeakSet<Cell>();
  private readonly _bars = new WeakMap<Cell, Widget>();
}
