import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { Signal } from '@lumino/signaling';

import { AgentActivity } from './agents.js';
import { OpenDocument, type MergeListener } from './context.js';
import {
  mergedDocument,
  type FileReader,
  type IFollowedDocument,
  type ISideNames,
  type ITyping
} from './document.js';
import { SharedDocument } from './shared.js';

/** Open documents that are kept in sync with their files. */
export class OpenDocuments {
  constructor(
    private readonly _files: FileReader,
    private readonly _names: ISideNames,
    private readonly _typing: ITyping,
    private readonly _onConflict: (
      document: OpenDocument,
      count: number
    ) => void
  ) {}

  /** Signs that agents work. */
  readonly agents = new AgentActivity();

  /** Called for each merge of a file into its document. */
  onMerge: MergeListener = (_context, _isAgents, merge) => merge();

  /** Emitted when a document's unsaved state changes. */
  readonly unsavedChanged = new Signal<this, void>(this);

  /** Paths of documents with unsaved changes. */
  get unsaved(): readonly string[] {
    return this._all
      .filter(document => document.isUnsaved)
      .map(({ path }) => path);
  }

  /** Follow a document unless it is followed already. */
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
        this.unsavedChanged.emit();
      }
    });
    this.unsavedChanged.emit();
    context.disposed.connect(() => {
      this._known.delete(context);
      document.dispose();
      this.unsavedChanged.emit();
    });
  }

  /** Merge changed files into all documents, or those at a path that was saved. */
  async sync(path?: string): Promise<void> {
    const wasSaved = path !== undefined;
    await Promise.all(
      this._all
        .filter(document => !wasSaved || document.path === path)
        .map(document => document.sync(wasSaved))
    );
  }

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
      merged &&
      new OpenDocument(
        context,
        merged,
        this._files,
        this.agents,
        (...notice) => this.onMerge(...notice),
        this._onConflict
      )
    );
  }

  private get _all(): readonly IFollowedDocument[] {
    return [...this._known.values()];
  }

  private readonly _known = new Map<
    DocumentRegistry.Context,
    IFollowedDocument
  >();
}
