import type { ISessionContext } from '@jupyterlab/apputils';
import type { Cell, ICellModel } from '@jupyterlab/cells';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { Widget } from '@lumino/widgets';

import { gate } from './gate.js';
import type { HeldKernels } from './kernels.js';
import { ScriptNotice } from './notice.js';

/** Notebook or console, as far as its outputs are concerned. */
export interface IOutputDocument {
  readonly sessionContext: ISessionContext;
  readonly rendermime: IRenderMimeRegistry;
  readonly contentHeader: { addWidget(widget: Widget): void };
  readonly cells: () => Iterable<Cell | null>;
}

/** Outputs of one document, without scripts while its kernel is held. */
export class OutputGuard {
  constructor(
    private readonly _document: IOutputDocument,
    private readonly _kernels: HeldKernels
  ) {
    gate(
      _document.rendermime,
      () => this._isHeld(),
      () => this._kernel && this._kernels.ask(this._kernel.id)
    );
    _document.sessionContext.kernelChanged.connect(this._refresh, this);
    _kernels.changed.connect(this._refresh, this);
    this._refresh();
  }

  dispose(): void {
    this._kernels.changed.disconnect(this._refresh, this);
    this._document.sessionContext.kernelChanged.disconnect(this._refresh, this);
  }

  /** Keep a cell untrusted that is about to run: else the server would sign its outputs. */
  begin(model: ICellModel): void {
    if (model.type === 'code' && this._isHeld()) {
      this._held.add(model);
      this._distrust(model);
      model.stateChanged.connect(this._distrust, this);
    }
  }

  end(model: ICellModel): void {
    model.stateChanged.disconnect(this._distrust, this);
  }

  private _distrust(model: ICellModel): void {
    if (model.trusted && this._isHeld()) {
      model.trusted = false;
      model.deleteMetadata('trusted');
    }
  }

  private _isHeld(): boolean {
    return this._kernel !== null && this._kernels.isHeld(this._kernel);
  }

  private get _kernel() {
    return this._document.sessionContext.session?.kernel ?? null;
  }

  private _refresh(): void {
    const kernel = this._kernel;
    if (kernel !== null && this._kernels.isAsking(kernel)) {
      this._showNotice();
    } else {
      this._notice?.dispose();
      this._notice = null;
    }
  }

  private _showNotice(): void {
    this._notice ??= new ScriptNotice(() => {
      if (this._kernel) {
        this._kernels.allow(this._kernel);
        this._renderAgain();
      }
    });
    if (!this._notice.parent) {
      this._document.contentHeader.addWidget(this._notice);
    }
  }

  private _renderAgain(): void {
    for (const cell of this._document.cells()) {
      if (cell?.model.type === 'code') {
        // A change of trust draws the outputs again.
        const trusted = cell.model.trusted || this._held.has(cell.model);
        cell.model.trusted = false;
        cell.model.trusted = trusted;
      }
    }
  }

  private _notice: ScriptNotice | null = null;
  private readonly _held = new WeakSet<ICellModel>();
}
