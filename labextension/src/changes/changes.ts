import { isRecord, text } from '../events/wire.js';
import { below } from '../log/summary.js';

const KINDS = ['created', 'changed', 'deleted', 'moved'] as const;

/** How a file or cell changed. */
export type ChangeKind = (typeof KINDS)[number];

/** File that differs from its state at the start of the session. */
export interface IFileChange {
  /** Absolute path. */
  readonly path: string;
  readonly kind: ChangeKind;
  /** Previous absolute path; "" if not moved. */
  readonly movedFrom: string;
  /** Numbers of changed lines. */
  readonly added: number;
  readonly removed: number;
  /** Size of a binary file, whose lines are not counted; else null. */
  readonly binarySize: number | null;
  /** What a person does that runs the change, such as “you run make”; "" if nothing. */
  readonly runsWhen: string;
  /** Whether others changed it between the edits. */
  readonly byOthers: boolean;
  readonly undoable: boolean;
  readonly redoable: boolean;
}

/** Changes of a session. */
export interface IChanges {
  /** Absolute path of the workspace. */
  readonly workspace: string;
  /** Why changes by commands are unknown; "" if they are known. */
  readonly problem: string;
  readonly files: readonly IFileChange[];
}

/** Part of a cell that is compared. */
export type CellPart = 'source' | 'outputs' | 'metadata';

/** Text before and after. */
export interface IComparison {
  readonly key: string;
  readonly kind: ChangeKind;
  /** Position of a cell, from 1; null for a file. */
  readonly cell: number | null;
  /** Part of a cell. */
  readonly part: CellPart;
  /** Language, or name of a file in it. */
  readonly language: string;
  readonly old: string;
  readonly new: string;
}

/** Comparisons of a file, or why there are none. */
export type Contents = readonly IComparison[] | 'binary' | 'forgotten' | 'long';

/** Parse the kernel's reply, or throw. */
export function readChanges(reply: unknown): IChanges {
  if (!isRecord(reply) || !Array.isArray(reply.files)) {
    throw new Error('The kernel sent unexpected changes.');
  }
  const files = reply.files.filter(isRecord).map(each => ({
    path: text(each, 'path'),
    kind: kindOf(each.kind),
    movedFrom: text(each, 'moved_from'),
    added: Number(each.added) || 0,
    removed: Number(each.removed) || 0,
    binarySize: typeof each.binary_size === 'number' ? each.binary_size : null,
    runsWhen: text(each, 'runs_when'),
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

/** Parse the comparisons of a file, or throw. */
export function readContents(
  reply: unknown,
  file: Pick<IFileChange, 'path' | 'kind'>
): Contents {
  if (!isRecord(reply)) {
    throw new Error('The kernel sent an unexpected file.');
  }
  if (Array.isArray(reply.cells)) {
    const language = text(reply, 'language') || 'python';
    return reply.cells
      .filter(isRecord)
      .flatMap((cell, index) => readCell(cell, language, index));
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
      part: 'source',
      language: file.path,
      old: text(reply, 'old'),
      new: text(reply, 'new')
    }
  ];
}

/** Compare the parts of a cell that differ; at least one is shown. */
function readCell(
  cell: Record<string, unknown>,
  language: string,
  index: number
): readonly IComparison[] {
  const position = cell.new_index ?? cell.old_index;
  const languages = {
    source: cell.cell_type === 'code' ? language : 'markdown',
    outputs: 'text',
    metadata: 'json'
  };
  const parts = (['source', 'outputs', 'metadata'] as const).map(part => ({
    key: `${text(cell, 'id')}/${index}/${part}`,
    kind: kindOf(cell.kind),
    cell: (typeof position === 'number' ? position : 0) + 1,
    part,
    language: languages[part],
    old: text(cell, `old_${part}`),
    new: text(cell, `new_${part}`)
  }));
  const changed = parts.filter(each => each.old !== each.new);
  return changed.length > 0 ? changed : parts.slice(0, 1);
}

function kindOf(value: unknown): ChangeKind {
  return KINDS.find(kind => kind === value) ?? 'changed';
}

/** Add files that were undone while the person looked, so that they can be redone. */
export function withUndone(
  before: readonly IFileChange[],
  now: readonly IFileChange[],
  undone: ReadonlySet<string>
): readonly IFileChange[] {
  const paths = new Set(now.map(({ path }) => path));
  const restored = before
    .filter(({ path }) => undone.has(path) && !paths.has(path))
    .map(file => ({
      ...file,
      added: 0,
      removed: 0,
      undoable: false,
      redoable: true
    }));
  return [...now, ...restored].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Return the path by which Jupyter opens a file of the kernel; null if it cannot.
 * @param root - Jupyter's root directory; the home is `~`.
 * @param notebook - Path of the notebook, whose directory is the kernel's `workspace`.
 */
export function contentsPath(
  path: string,
  root: string,
  workspace: string,
  notebook: string
): string | null {
  const inRoot = below(path, root);
  if (inRoot !== path) {
    return inRoot;
  }
  const name = below(path, workspace);
  if (name === path) {
    return null;
  }
  return notebook.slice(0, notebook.lastIndexOf('/') + 1) + name;
}
