import type { YFile, YNotebook } from '@jupyter/ydoc';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { Contents } from '@jupyterlab/services';
import { UUID, type PartialJSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';

import {
  canonical,
  identified,
  mergeNotebook,
  metadataEdit,
  type ICellState
} from './cells.js';
import { applyMerge, openCells, setMetadata, setText } from './live.js';
import { markedText, mergedText, mergeText } from './text.js';

/** An open document that changes in the file are merged into. */
export interface IMergedDocument {
  /** What is compared with the file later. */
  snapshot(): unknown;
  /**
   * Merge a file into the open document.
   *
   * @param base - A snapshot of when both were the same.
   * @param content - Of the file.
   * @returns The snapshot of that file, and of how many places both versions are kept.
   */
  merge(base: unknown, content: unknown): { base: unknown; conflicts: number };
  /** Whether the text that people write is that of a snapshot. */
  hasTextOf(snapshot: unknown): boolean;
}

/** Where the person types in a notebook. */
export interface ITyping {
  /** Id of the cell, or null. */
  cell(): string | null;
  /** Give up the focus, before that cell is deleted: otherwise the next cell would get it. */
  leave(): void;
}

/** Marks of a conflict in a text: the names of the two sides. */
export interface ISideNames {
  readonly ours: string;
  readonly theirs: string;
}

interface INotebookState {
  readonly cells: readonly ICellState[];
  readonly metadata: PartialJSONObject;
}

class MergedNotebook implements IMergedDocument {
  constructor(
    private readonly _shared: YNotebook,
    private readonly _typing: ITyping
  ) {}

  snapshot(): INotebookState {
    return {
      cells: openCells(this._shared),
      metadata: this._shared.getMetadata() as PartialJSONObject
    };
  }

  hasTextOf({ cells }: INotebookState): boolean {
    // The kernel's language is noted in the metadata of whatever is opened.
    return isSameContent(openCells(this._shared), cells);
  }

  merge(base: INotebookState, content: unknown) {
    const file = content as INotebookContent;
    const theirs = identified(file.cells, base.cells, () => UUID.uuid4());
    const ours = this.snapshot();
    const merge = mergeNotebook(base.cells, ours.cells, theirs, () =>
      UUID.uuid4()
    );
    const metadata = file.metadata as PartialJSONObject;
    setMetadata(
      this._shared,
      metadataEdit(base.metadata, ours.metadata, metadata)
    );
    const cell = this._typing.cell();
    if (cell !== null && !merge.order.includes(cell)) {
      this._typing.leave();
    }
    applyMerge(this._shared, merge, cell);
    const cells = theirs.map(({ id, type, source, metadata, rest }) => ({
      id,
      type,
      source,
      metadata,
      rest
    }));
    return { base: { cells, metadata }, conflicts: merge.conflicts.length };
  }
}

class MergedText implements IMergedDocument {
  constructor(
    private readonly _shared: YFile,
    private readonly _names: ISideNames
  ) {}

  snapshot(): string {
    return this._shared.getSource();
  }

  hasTextOf(snapshot: string): boolean {
    return this.snapshot() === snapshot;
  }

  merge(base: string, content: unknown) {
    const file = String(content).replace(/\r\n?/g, '\n');
    const pieces = mergeText(base, this.snapshot(), file);
    const { ours, theirs } = this._names;
    setText(
      this._shared,
      mergedText(pieces) ?? markedText(pieces, ours, theirs)
    );
    const conflicts = pieces.filter(piece => typeof piece !== 'string');
    return { base: file, conflicts: conflicts.length };
  }
}

/** An open document whose unsaved changes agents are to read. */
export interface IFollowedDocument extends IDisposable {
  readonly path: string;
  readonly isUnsaved: boolean;
  readonly hasUnsavedText: boolean;
  sync(): Promise<void>;
  save(): Promise<void>;
}

/** How a document is merged; null where it is neither text nor notebook. */
export function mergedDocument(
  { model }: DocumentRegistry.Context,
  names: ISideNames,
  typing: ITyping
): IMergedDocument | null {
  const shared: unknown = model.sharedModel;
  if (typeof shared !== 'object' || shared === null) {
    return null;
  }
  if ('cells' in shared) {
    return new MergedNotebook(shared as YNotebook, typing);
  }
  return 'ysource' in shared ? new MergedText(shared as YFile, names) : null;
}

/** Whether two snapshots are of the same content. */
export function isSameContent(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

/** What is asked of the contents manager. */
export type FileReader = Pick<Contents.IManager, 'get' | 'localPath' | 'save'>;
