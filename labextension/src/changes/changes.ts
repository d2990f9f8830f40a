import { isRecord, text } from '../events/wire.js';

const KINDS = ['created', 'changed', 'deleted', 'moved'] as const;

/** What became of a file or a cell. */
export type ChangeKind = (typeof KINDS)[number];

/** A file that is not what it was when the session began. */
export interface IFileChange {
  /** Absolute path. */
  readonly path: string;
  readonly kind: ChangeKind;
  /** Absolute path where it was; "" if it was not moved. */
  readonly movedFrom: string;
  /** Numbers of lines. */
  readonly added: number;
  readonly removed: number;
  /** Bytes of a file that is no text, whose lines are not counted; else null. */
  readonly binarySize: number | null;
  /** Whether others changed it between the edits. */
  readonly byOthers: boolean;
  readonly undoable: boolean;
  readonly redoable: boolean;
}

/** The changes of a session. */
export interface IChanges {
  /** Absolute path of the workspace. */
  readonly workspace: string;
  /** Why only edits are known, and not what commands changed; "" if all is known. */
  readonly problem: string;
  readonly files: readonly IFileChange[];
}

/** One text before and after, and what it is. */
export interface IComparison {
  readonly key: string;
  readonly kind: ChangeKind;
  /** Position of a cell, counted from 1; null for a file. */
  readonly cell: number | null;
  /** Name of the language, or of a file in it. */
  readonly language: string;
  readonly old: string;
  readonly new: string;
}

/** What is there to be compared of a file, or the reason why nothing is. */
export type Contents = readonly IComparison[] | 'binary' | 'forgotten' | 'long';

/** @throws Error if the kernel sent something else. */
export function readChanges(reply: unknown): IChanges {
  if (!isRecord(reply) || !Array.isArray(reply.files)) {
    throw new Error('The kernel sent changes of an unknown form.');
  }
  const files = reply.files.filter(isRecord).map(each => ({
    path: text(each, 'path'),
    kind: kindOf(each.kind),
    movedFrom: text(each, 'moved_from'),
    added: Number(each.added) || 0,
    removed: Number(each.removed) || 0,
    binarySize: typeof each.binary_size === 'number' ? each.binary_size : null,
    byOthers: each.by_others === true,
    undoable: each.undoable === true,
    redoable: each.redoable === true
  }));
  return {
    workspace: text(reply, 'workspace'),
    problem: text(reply, 'problem'),
    files
  };
}

/** @throws Error if the kernel sent something else. */
export function readContents(reply: unknown, file: IFileChange): Contents {
  if (!isRecord(reply)) {
    throw new Error('The kernel sent a file of an unknown form.');
  }
  if (Array.isArray(reply.cells)) {
    const language = text(reply, 'language') || 'python';
    return reply.cells
      .filter(isRecord)
      .map((cell, index) => readCell(cell, language, index));
  }
  if (typeof reply.reason === 'string') {
    return reply.reason === 'binary' || reply.reason === 'forgotten'
      ? reply.reason
      : 'long';
  }
  return [
    {
      key: file.path,
      kind: file.kind,
      cell: null,
      language: file.path,
      old: text(reply, 'old'),
      new: text(reply, 'new')
    }
  ];
}

function readCell(
  cell: Record<string, unknown>,
  language: string,
  index: number
): IComparison {
  const position = cell.new_index ?? cell.old_index;
  return {
    key: `${text(cell, 'id')}/${index}`,
    kind: kindOf(cell.kind),
    cell: (typeof position === 'number' ? position : 0) + 1,
    language: cell.cell_type === 'code' ? language : 'markdown',
    old: text(cell, 'old_source'),
    new: text(cell, 'new_source')
  };
}

function kindOf(value: unknown): ChangeKind {
  return KINDS.find(kind => kind === value) ?? 'changed';
}

/** A path as people name it: below a directory where it is there, else whole. */
export function relativeTo(directory: string, path: string): string {
  const prefix = directory.endsWith('/') ? directory : `${directory}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/**
 * What to list: the changes, and files that were changed back while a person
 * looked, so that they can be changed again.
 */
export function withUndone(
  before: readonly IFileChange[],
  now: readonly IFileChange[],
  undone: ReadonlySet<string>
): readonly IFileChange[] {
  const paths = new Set(now.map(({ path }) => path));
  const back = before
    .filter(({ path }) => undone.has(path) && !paths.has(path))
    .map(file => ({
      ...file,
      added: 0,
      removed: 0,
      undoable: false,
      redoable: true
    }));
  return [...now, ...back].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * The path by which Jupyter opens a file of the kernel; null if it lies elsewhere.
 *
 * @param path - Absolute path of the file.
 * @param root - Directory that Jupyter shows, as it tells it: the home is `~`.
 * @param workspace - Absolute path of the kernel's directory.
 * @param notebook - Path of the notebook, whose directory is the kernel's.
 */
export function contentsPath(
  path: string,
  root: string,
  workspace: string,
  notebook: string
): string | null {
  const below = relativeTo(root, path);
  if (below !== path) {
    return below;
  }
  const name = relativeTo(workspace, path);
  if (name === path) {
    return null;
  }
  return notebook.slice(0, notebook.lastIndexOf('/') + 1) + name;
}
