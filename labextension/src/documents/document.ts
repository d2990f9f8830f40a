import type { YFile, YNotebook } from '@jupyter/ydoc';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { Contents } from '@jupyterlab/services';
import { UUID, type PartialJSONObject } from '@lumino/coreutils';

import {
  canonical,
  identified,
  mergeNotebook,
  metadataEdit,
  withoutOutputs,
  type ICellState
} from './cells.js';
import { applyMerge, openCells, setMetadata, setText } from './apply.js';
import { markedText, mergedText, mergeText } from './text.js';

/** Open document into which changes of its file can be merged. */
export interface IMergedDocument {
  /** Return the current content for later comparison. */
  snapshot(): unknown;
  /**
   * Merge a file into the document, given the last common snapshot.
   * @returns The file's snapshot, and the number of places with both versions.
   */
  merge(base: unknown, content: unknown): { base: unknown; conflicts: number };
  /** Return whether the text, without outputs, equals that of a snapshot. */
  hasTextOf(snapshot: unknown): boolean;
}

export interface ITyping {
  /** Return the id of the edited cell, or null. */
  cell(): string | null;
  /** Remove the focus before that cell is deleted, or the next cell would get it. */
  leave(): void;
}

/** Names of the two sides in conflict marks. */
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
    // JupyterLab adds the kernel's language to the metadata of an opened notebook.
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
    const cells = theirs.map(withoutOutputs);
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

/** Open document that is kept in sync with its file. */
export interface IFollowedDocument {
  dispose(): void;
  readonly path: string;
  readonly isUnsaved: boolean;
  readonly hasUnsavedText: boolean;
  sync(wasSaved?: boolean): Promise<void>;
  save(): Promise<void>;
}

/** Wrap a text or notebook document for merging; null for others. */
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

/** Return whether two snapshots are equal. */
export function isSameContent(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

export type FileReader = Pick<Contents.IManager, 'get' | 'localPath' | 'save'>;
