import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';

import type { IFollowedDocument } from './document.js';

/** Internals of a context: what it knows of its file, and saving. */
interface IContextInternals {
  _updateContentsModel(model: Contents.IModel): void;
  _maybeSave(options: Partial<Contents.IModel>): Promise<Contents.IModel>;
  /** Asks the person whether to overwrite a file that has changed. */
  _raiseConflict(
    model: Contents.IModel,
    options: Partial<Contents.IModel>
  ): Promise<Contents.IModel>;
}

/** Document of jupyter-collaboration, which discards unsaved changes when the file changes. */
export class SharedDocument implements IFollowedDocument {
  constructor(private readonly _context: DocumentRegistry.Context) {
    const internals = this._context as unknown as IContextInternals;
    // The server merges the file and saves it for all windows, so there is nothing to ask. A
    // question would take the keys that someone is typing.
    internals._raiseConflict = (model, options) => {
      internals._updateContentsModel(model);
      return internals._maybeSave(options);
    };
  }

  get path(): string {
    return this._context.path;
  }

  get isUnsaved(): boolean {
    return !this._isDisposed && this._context.model.dirty;
  }

  get hasUnsavedText(): boolean {
    return this.isUnsaved;
  }

  dispose(): void {
    this._isDisposed = true;
  }

  async sync(): Promise<void> {}

  async save(): Promise<void> {
    await this._context.save();
  }

  private _isDisposed = false;
}
