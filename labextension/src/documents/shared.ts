import type { DocumentRegistry } from '@jupyterlab/docregistry';

import type { IFollowedDocument } from './document.js';

/**
 * A document that jupyter-collaboration keeps the same as its file.
 *
 * It reads a file that somebody else changes, in place of what is not saved: so it is saved before.
 */
export class SharedDocument implements IFollowedDocument {
  /** @param context - Of the document. */
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

  get isDisposed(): boolean {
    return this._isDisposed;
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
