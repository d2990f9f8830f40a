import type {
  ICellChange,
  IFileChange,
  IFileContents
} from '../control/operations.js';
import { below } from '../log/summary.js';

/** How a file or cell changed. */
export type ChangeKind = IFileChange['kind'];

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
export type Contents =
  readonly IComparison[] | NonNullable<IFileContents['reason']>;

/** Return the comparisons of a file. */
export function contentsOf(
  reply: IFileContents,
  file: Pick<IFileChange, 'path' | 'kind'>
): Contents {
  if (reply.reason !== null) {
    return reply.reason;
  }
  if (reply.cells.length > 0) {
    const language = reply.language || 'python';
    return reply.cells.flatMap((cell, index) =>
      comparedParts(cell, language, index)
    );
  }
  return [
    {
      key: file.path,
      kind: file.kind,
      cell: null,
      part: 'source',
      language: file.path,
      old: reply.old ?? '',
      new: reply.new ?? ''
    }
  ];
}

/** Compare the parts of a cell that differ; at least one is shown. */
function comparedParts(
  cell: ICellChange,
  language: string,
  index: number
): readonly IComparison[] {
  const languages = {
    source: cell.cell_type === 'code' ? language : 'markdown',
    outputs: 'text',
    metadata: 'json'
  };
  const parts = (['source', 'outputs', 'metadata'] as const).map(part => ({
    key: `${cell.id ?? ''}/${index}/${part}`,
    kind: cell.kind,
    cell: (cell.new_index ?? cell.old_index ?? 0) + 1,
    part,
    language: languages[part],
    old: cell[`old_${part}`],
    new: cell[`new_${part}`]
  }));
  const changed = parts.filter(each => each.old !== each.new);
  return changed.length > 0 ? changed : parts.slice(0, 1);
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
