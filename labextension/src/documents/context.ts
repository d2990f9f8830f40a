import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { ServerConnection, type Contents } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import {
  isSameContent,
  type FileReader,
  type IFollowedDocument,
  type IMergedDocument
} from './document.js';

/** A context's own note of the file that it was loaded from, and how it saves. */
interface IContextInternals {
  _updateContentsModel(model: Contents.IModel): void;
  _createSaveOptions(): Partial<Contents.IModel>;
  /** Asks the person if the file has changed. */
  _maybeSave(options: Partial<Contents.IModel>): Promise<Contents.IModel>;
}

/** Field of a save: the hash of the file that it replaces, else the server refuses it. */
const EXPECTED_HASH = 'oh_jupyter_expected_hash';
const CONFLICT = 409;

/** Keeps an open document and its file the same, whoever changes the file. */
export class OpenDocument implements IFollowedDocument {
  /**
   * @param context - Of the document.
   * @param document - How it is merged.
   * @param files - Where its file is read.
   * @param onConflict - Told that both versions were kept, in how many places.
   */
  constructor(
    context: DocumentRegistry.Context,
    document: IMergedDocument,
    files: FileReader,
    onConflict: (document: OpenDocument, count: number) => void
  ) {
    this._context = context;
    this._document = document;
    this._files = files;
    this._onConflict = onConflict;
    this._save = context.save.bind(context);
    // There is no hook before a save, which asks whether to overwrite what changed in the file.
    context.save = () => this.save();
    const internals = context as unknown as IContextInternals;
    this._saveOrAsk = internals._maybeSave.bind(context);
    internals._maybeSave = options => this._saveMerged(options);
    context.saveState.connect(this._onSaveState, this);
    context.fileChanged.connect(this._onFileChanged, this);
    void context.ready.then(() => {
      this._base ??= this._document.snapshot();
    });
  }

  /** Where it is below the server's root; with its drive, where it is not the server's. */
  get path(): string {
    return this._context.path;
  }

  /** Whether the person has changed what is not in the file. */
  get isUnsaved(): boolean {
    return !this._isDisposed && this._context.model.dirty;
  }

  /** Whether some of that is what an agent would read. */
  get hasUnsavedText(): boolean {
    return (
      this.isUnsaved &&
      this._base !== undefined &&
      !this._document.hasTextOf(this._base)
    );
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Merge the file into the open document, if the file has changed. */
  async sync(): Promise<void> {
    // One that has not begun will see what has changed by now.
    this._nextSync ??= this._enqueue(async () => {
      this._nextSync = null;
      await this._sync();
    });
    await this._nextSync;
  }

  /** Save the open document with what has changed in the file. */
  async save(): Promise<void> {
    await this._enqueue(async () => {
      await this._sync();
      try {
        await this._save();
      } finally {
        // JupyterLab tells of no end where the person has cancelled it.
        this._saving = undefined;
      }
    });
  }

  /** Save, and merge first whatever somebody writes to the file until that is done. */
  private async _saveMerged(
    options: Partial<Contents.IModel>
  ): Promise<Contents.IModel> {
    const { contentsModel, path } = this._context;
    const hash = contentsModel?.hash;
    if (!hash || this._isUnordered) {
      return this._saveOrAsk(options);
    }
    try {
      const expecting = { ...options, [EXPECTED_HASH]: hash };
      const saved = await this._files.save(path, expecting);
      if (saved.hash) {
        return saved;
      }
      // The server has no extension that looks at what is expected.
      this._isUnordered = true;
      const now = await this._files.get(path, { content: false, hash: true });
      return now.hash ? { ...saved, hash: now.hash } : saved;
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
    }
    await this._sync();
    this._saving = this._document.snapshot();
    const merged = (
      this._context as unknown as IContextInternals
    )._createSaveOptions();
    return this._context.contentsModel?.hash === hash
      ? this._saveOrAsk(merged)
      : this._saveMerged(merged);
  }

  private async _enqueue(work: () => Promise<void>): Promise<void> {
    const done = this._last.then(work);
    this._last = done.catch(() => undefined);
    await done;
  }

  private async _sync(): Promise<void> {
    const { path } = this._context;
    if (this._isDisposed || this._base === undefined) {
      return;
    }
    // Of a file that is gone or cannot be read, the save tells; drives have errors of their own.
    const file = await this._changedFile(path).catch(() => null);
    if (file && !this._isDisposed && path === this._context.path) {
      this._merge(file);
    }
  }

  private async _changedFile(path: string): Promise<Contents.IModel | null> {
    const now = await this._files.get(path, { content: false, hash: true });
    if (isSameFile(now, this._context.contentsModel)) {
      return null;
    }
    const isNotebook = now.type === 'notebook';
    return this._files.get(path, {
      content: true,
      hash: true,
      type: isNotebook ? 'notebook' : 'file',
      format: isNotebook ? 'json' : 'text'
    });
  }

  private _merge(file: Contents.IModel): void {
    const { model } = this._context;
    const wasDirty = model.dirty;
    const { base, conflicts } = this._document.merge(this._base, file.content);
    this._base = base;
    this._isMerging = true;
    try {
      (this._context as unknown as IContextInternals)._updateContentsModel(
        file
      );
    } finally {
      this._isMerging = false;
    }
    model.dirty = wasDirty
      ? !this._isAsFile
      : !this._document.hasTextOf(this._base);
    if (conflicts > 0) {
      this._onConflict(this, conflicts);
    }
  }

  private get _isAsFile(): boolean {
    return isSameContent(this._document.snapshot(), this._base);
  }

  private _onSaveState(_: unknown, state: DocumentRegistry.SaveState): void {
    if (state === 'started') {
      this._saving = this._document.snapshot();
    } else {
      if (state === 'completed' && this._saving !== undefined) {
        this._base = this._saving;
        // What was typed during the save is not in the file.
        this._context.model.dirty = !this._isAsFile;
      }
      this._saving = undefined;
    }
  }

  private _onFileChanged(): void {
    if (!this._isMerging && this._saving === undefined) {
      // The person has loaded the file again.
      this._base = this._document.snapshot();
    }
  }

  private readonly _context: DocumentRegistry.Context;
  private readonly _document: IMergedDocument;
  private readonly _files: FileReader;
  private readonly _onConflict: (document: OpenDocument, count: number) => void;
  private readonly _save: () => Promise<void>;
  private readonly _saveOrAsk: IContextInternals['_maybeSave'];
  private _isUnordered = false;
  /** What was the same in the file and here; undefined until it is loaded. */
  private _base: unknown;
  private _saving: unknown;
  private _isMerging = false;
  private _isDisposed = false;
  private _last: Promise<void> = Promise.resolve();
  private _nextSync: Promise<void> | null = null;
}

function isConflict(error: unknown): boolean {
  return (
    error instanceof ServerConnection.ResponseError &&
    error.response.status === CONFLICT
  );
}

function isSameFile(
  now: Contents.IModel,
  known: Contents.IModel | null | Omit<Contents.IModel, 'content'>
): boolean {
  return now.hash && known?.hash
    ? now.hash === known.hash
    : now.last_modified === known?.last_modified;
}
