import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { Signal, type ISignal } from '@lumino/signaling';

import { OpenDocument } from './context.js';
import {
  mergedDocument,
  type FileReader,
  type IFollowedDocument,
  type ISideNames,
  type ITyping
} from './document.js';
import { SharedDocument } from './shared.js';

/** The open documents that are kept the same as their files. */
export class OpenDocuments {
  /**
   * @param files - Where files are read.
   * @param names - Of the two sides, where a text has both.
   * @param typing - Where the person types.
   * @param onConflict - Told that both versions were kept, in how many places.
   */
  constructor(
    files: FileReader,
    names: ISideNames,
    typing: ITyping,
    onConflict: (document: OpenDocument, count: number) => void
  ) {
    this._files = files;
    this._names = names;
    this._typing = typing;
    this._onConflict = onConflict;
  }

  /** Emitted when a document has changes that are not in its file, or none any more. */
  get unsavedChanged(): ISignal<this, void> {
    return this._unsavedChanged;
  }

  /** Paths of the documents with changes that are not in their files. */
  get unsaved(): readonly string[] {
    return this._all
      .filter(document => document.isUnsaved)
      .map(({ path }) => path);
  }

  /** Follow a document, unless it is followed already. */
  add(context: DocumentRegistry.Context): void {
    if (this._known.has(context) || context.isDisposed) {
      return;
    }
    const document = this._followed(context);
    if (!document) {
      return;
    }
    this._known.set(context, document);
    context.model.stateChanged.connect((_, { name }) => {
      if (name === 'dirty') {
        this._unsavedChanged.emit();
      }
    });
    this._unsavedChanged.emit();
    context.disposed.connect(() => {
      this._known.delete(context);
      document.dispose();
      this._unsavedChanged.emit();
    });
  }

  /** Merge what has changed in the files: of all documents, or of those at a path. */
  async sync(path?: string): Promise<void> {
    await Promise.all(
      this._all
        .filter(document => path === undefined || document.path === path)
        .map(document => document.sync())
    );
  }

  /** Save the text that is not in the files. */
  async saveUnsaved(): Promise<void> {
    const unsaved = this._all.filter(document => document.hasUnsavedText);
    await Promise.allSettled(unsaved.map(document => document.save()));
  }

  private _followed(
    context: DocumentRegistry.Context
  ): IFollowedDocument | null {
    if (context.model.collaborative) {
      return new SharedDocument(context);
    }
    const merged = mergedDocument(context, this._names, this._typing);
    return (
      merged && new OpenDocument(context, merged, this._files, this._onConflict)
    );
  }

  private get _all(): readonly IFollowedDocument[] {
    return [...this._known.values()];
  }

  private readonly _files: FileReader;
  private readonly _names: ISideNames;
  private readonly _typing: ITyping;
  private readonly _onConflict: (document: OpenDocument, count: number) => void;
  private readonly _known = new Map<
    DocumentRegistry.Context,
    IFollowedDocument
  >();
  private readonly _unsavedChanged = new Signal<this, void>(this);
}
