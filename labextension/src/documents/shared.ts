import type { DocumentRegistry } from '@jupyterlab/docregistry';

import type { IFollowedDocument } from './document.js';

/** Document of jupyter-collaboration, which discards unsaved changes when the file changes. */
export class SharedDocument implements IFollowedDocument {
  constructor(private readonly _context: DocumentRegistry.Context) {}

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
