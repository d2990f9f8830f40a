import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { ServerConnection, type Contents } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type { AgentActivity } from './agents.js';
import {
  isSameContent,
  type FileReader,
  type IFollowedDocument,
  type IMergedDocument
} from './document.js';

/** Internals of a context: the loaded file's metadata, and saving. */
interface IContextInternals {
  _updateContentsModel(model: Contents.IModel): void;
  _createSaveOptions(): Partial<Contents.IModel>;
  /** Asks the person if the file changed. */
  _maybeSave(options: Partial<Contents.IModel>): Promise<Contents.IModel>;
}

/** Called with each merge and whether it takes changes of an agent; calls the merge. */
export type MergeListener = (
  context: DocumentRegistry.Context,
  isAgents: boolean,
  merge: () => void
) => void;

/** Field of a save request: hash of the file to replace; the server rejects the save if it differs. */
const EXPECTED_HASH = 'oh_jupyter_expected_hash';
const CONFLICT = 409;

/** Keeps an open document and its file in sync. */
export class OpenDocument implements IFollowedDocument {
  constructor(
    private readonly _context: DocumentRegistry.Context,
    private readonly _document: IMergedDocument,
    private readonly _files: FileReader,
    private readonly _agents: AgentActivity,
    private readonly _onMerge: MergeListener,
    private readonly _onConflict: (
      document: OpenDocument,
      count: number
    ) => void
  ) {
    this._save = this._context.save.bind(this._context);
    // No hook runs before a save that asks whether to overwrite a changed file.
    this._context.save = () => this.save();
    this._internals = this._context as unknown as IContextInternals;
    this._seenSigns = this._agents.signs;
    this._saveOrAsk = this._internals._maybeSave.bind(this._context);
    this._internals._maybeSave = options => this._saveMerged(options);
    this._context.saveState.connect(this._onSaveState, this);
    this._context.fileChanged.connect(this._onFileChanged, this);
    void this._context.ready.then(() => {
      this._base ??= this._document.snapshot();
    });
  }

  /** Path below the server's root, with the drive's name on another drive. */
  get path(): string {
    return this._context.path;
  }

  /** Whether it has unsaved changes. */
  get isUnsaved(): boolean {
    return !this._isDisposed && this._context.model.dirty;
  }

  /** Whether these include text that an agent would read. */
  get hasUnsavedText(): boolean {
    return (
      this.isUnsaved &&
      this._base !== undefined &&
      !this._document.hasTextOf(this._base)
    );
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Merge the file if it changed; commands of agents change files without a save in Jupyter. */
  async sync(wasSaved = false): Promise<void> {
    this._wasOnlySaved = wasSaved && (this._wasOnlySaved || !this._nextSync);
    // A pending sync will see all changes up to now.
    this._nextSync ??= this._enqueue(async () => {
      this._nextSync = null;
      await this._sync(this._wasOnlySaved);
    });
    await this._nextSync;
  }

  /** Merge changes of the file, then save. */
  async save(): Promise<void> {
    await this._enqueue(async () => {
      await this._sync();
      try {
        await this._save();
      } finally {
        // JupyterLab reports no end if the person cancels.
        this._saving = undefined;
      }
    });
  }

  /** Save, merging first anything written to the file meanwhile. */
  private async _saveMerged(
    options: Partial<Contents.IModel>
  ): Promise<Contents.IModel> {
    const { contentsModel, path } = this._context;
    const hash = contentsModel?.hash;
    if (!hash || this._ignoresHash) {
      return this._saveOrAsk(options);
    }
    try {
      const request = { ...options, [EXPECTED_HASH]: hash };
      const saved = await this._files.save(path, request);
      if (saved.hash) {
        return saved;
      }
      // The server ignores the expected hash: it lacks our extension.
      this._ignoresHash = true;
      const now = await this._files.get(path, { content: false, hash: true });
      return now.hash ? { ...saved, hash: now.hash } : saved;
    } catch (error) {
      if (!isConflict(error)) {
        throw error;
      }
    }
    await this._sync();
    this._saving = this._document.snapshot();
    const merged = this._internals._createSaveOptions();
    return this._context.contentsModel?.hash === hash
      ? this._saveOrAsk(merged)
      : this._saveMerged(merged);
  }

  private async _enqueue(work: () => Promise<void>): Promise<void> {
    const done = this._last.then(work);
    this._last = done.catch(() => undefined);
    await done;
  }

  private async _sync(wasOnlySaved = false): Promise<void> {
    const { path } = this._context;
    if (this._isDisposed || this._base === undefined) {
      return;
    }
    // Later signs may be of changes that the file lacks when it is read.
    const { signs } = this._agents;
    // Saving reports an unreadable or deleted file.
    const file = await this._changedFile(path).catch(() => null);
    if (file && !this._isDisposed && path === this._context.path) {
      const { isSaving, isWorking } = this._agents;
      const isAgents =
        this._agents.signs > this._seenSigns ||
        (wasOnlySaved ? isSaving : isWorking);
      this._onMerge(this._context, isAgents, () => this._merge(file));
    }
    this._seenSigns = signs;
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
      this._internals._updateContentsModel(file);
    } finally {
      this._isMerging = false;
    }
    model.dirty = wasDirty
      ? !this._equalsFile
      : !this._document.hasTextOf(this._base);
    if (conflicts > 0) {
      this._onConflict(this, conflicts);
    }
  }

  private get _equalsFile(): boolean {
    return isSameContent(this._document.snapshot(), this._base);
  }

  private _onSaveState(_: unknown, state: DocumentRegistry.SaveState): void {
    if (state === 'started') {
      this._saving = this._document.snapshot();
    } else {
      if (state === 'completed' && this._saving !== undefined) {
        this._base = this._saving;
        // Text typed during the save is not in the file.
        this._context.model.dirty = !this._equalsFile;
      }
      this._saving = undefined;
    }
  }

  private _onFileChanged(): void {
    if (!this._isMerging && this._saving === undefined) {
      // The person reloaded the file.
      this._base = this._document.snapshot();
    }
  }

  private readonly _internals: IContextInternals;
  private readonly _save: () => Promise<void>;
  private readonly _saveOrAsk: IContextInternals['_maybeSave'];
  private _ignoresHash = false;
  /** Last common version; undefined until loaded. */
  private _base: unknown;
  private _saving: unknown;
  private _isMerging = false;
  private _isDisposed = false;
  private _last: Promise<void> = Promise.resolve();
  private _nextSync: Promise<void> | null = null;
  private _wasOnlySaved = false;
  /** Signs of agents before the file was last read. */
  private _seenSigns = 0;
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
