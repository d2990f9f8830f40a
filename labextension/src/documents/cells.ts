/** Three-way merges of notebooks, cell by cell. */
import type { ICell, IOutput } from '@jupyterlab/nbformat';
import type { PartialJSONObject, PartialJSONValue } from '@lumino/coreutils';
import { diffIndices } from 'node-diff3';

import { mergedText, mergeText } from './text.js';

/** Cell data that merges compare. */
export interface ICellState {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly metadata: PartialJSONObject;
  /** Digest of outputs, execution count and attachments. */
  readonly rest: string;
  readonly count: number | null;
}

/** Cell of a file, with data that merges only copy. */
export interface IFileCell extends ICellState {
  readonly outputs: readonly IOutput[];
  readonly attachments: PartialJSONObject | undefined;
}

/** Change to an existing cell. */
export interface ICellEdit {
  readonly source: string;
  readonly type: string;
  /** Changed keys; undefined deletes one. */
  readonly metadata: ReadonlyMap<string, PartialJSONValue | undefined>;
  /** Source of outputs and attachments; null keeps the current ones. */
  readonly rest: IFileCell | null;
}

/** Changes that turn an open notebook into the merged one. */
export interface INotebookMerge {
  /** Ids of the merged cells in order. */
  readonly order: readonly string[];
  /** Cells missing in the open notebook. */
  readonly added: ReadonlyMap<string, IFileCell>;
  /** Ids of added cells that were deleted here, but changed in the file. */
  readonly restored: ReadonlySet<string>;
  /** Ids of cells to move. */
  readonly moved: ReadonlySet<string>;
  readonly edits: ReadonlyMap<string, ICellEdit>;
  /** Ids of conflicting cells, each placed above its copy from the file. */
  readonly conflicts: readonly string[];
}

/** Serialize a value with sorted keys and joined lines, so that equal values have equal text. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(
          Object.entries(each)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, inner]) => [key, joined(inner)])
        )
      : each
  );
}

/** Join a text that a notebook file stores as a list of lines. */
function joined(value: unknown): unknown {
  return Array.isArray(value) &&
    value.length > 0 &&
    value.every(line => typeof line === 'string')
    ? value.join('')
    : value;
}

/**
 * Join neighbouring streams of the same name, and their texts.
 *
 * JupyterLab joins them while it shows them, and would add the second to the document once more.
 */
function combined(outputs: readonly IOutput[]): readonly IOutput[] {
  const all: IOutput[] = [];
  for (const output of outputs) {
    if (output.output_type !== 'stream') {
      all.push(output);
      continue;
    }
    const last = all.at(-1);
    const text = String(joined(output.text));
    if (last?.output_type === 'stream' && last.name === output.name) {
      last.text = `${String(last.text)}${text}`;
    } else {
      all.push({ ...output, text });
    }
  }
  return all;
}

/** Hash a text. */
function digest(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x1b873593;
  for (let n = 0; n < text.length; n++) {
    const code = text.charCodeAt(n);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b) ^ (b >>> 13);
  }
  return `${text.length}:${a}:${b}`;
}

/** Convert a cell of the notebook format. */
export function fileCell(cell: ICell, id: string): IFileCell {
  const { trusted: _, ...metadata } = cell.metadata as PartialJSONObject;
  const outputs = combined((cell.outputs ?? []) as IOutput[]);
  const count = (cell.execution_count ?? null) as number | null;
  const attachments = cell.attachments as PartialJSONObject | undefined;
  return {
    id,
    type: cell.cell_type,
    source: String(joined(cell.source)),
    metadata,
    rest: digest(canonical([outputs, count, attachments ?? {}])),
    outputs,
    count,
    attachments
  };
}

/** Convert a cell without its outputs, to save memory. */
export function cellState(cell: ICell, id: string): ICellState {
  return withoutOutputs(fileCell(cell, id));
}

export function withoutOutputs(cell: IFileCell): ICellState {
  const { id, type, source, metadata, rest, count } = cell;
  return { id, type, source, metadata, rest, count };
}

/** Convert the cells of a file, giving each an id: before format 4.5, that of the cell in `base`. */
export function identified(
  cells: readonly ICell[],
  base: readonly ICellState[],
  newId: () => string
): readonly IFileCell[] {
  const ids = cells.every(({ id }) => typeof id === 'string')
    ? cells.map(({ id }) => String(id))
    : alignedIds(cells, base, newId);
  const seen = new Set<string>();
  return cells.map((cell, n) => {
    const id = seen.has(ids[n]!) ? newId() : ids[n]!;
    seen.add(id);
    return fileCell(cell, id);
  });
}

function alignedIds(
  cells: readonly ICell[],
  base: readonly ICellState[],
  newId: () => string
): string[] {
  const now = cells.map(cell => fileCell(cell, ''));
  const key = ({ type, source }: ICellState) => `${type}\n${source}`;
  const ids = cells.map(() => '');
  let from = 0;
  let to = 0;
  const keep = (until: number) => {
    while (from < until) {
      ids[to++] = base[from++]!.id;
    }
  };
  for (const { buffer1, buffer2 } of diffIndices(base.map(key), now.map(key))) {
    keep(buffer1[0]);
    const removed = base.slice(buffer1[0], buffer1[0] + buffer1[1]);
    for (; to < buffer2[0] + buffer2[1]; to++) {
      const like = removed.findIndex(({ type }) => type === now[to]!.type);
      ids[to] = like < 0 ? newId() : removed.splice(0, like + 1).at(-1)!.id;
    }
    from = buffer1[0] + buffer1[1];
  }
  keep(base.length);
  return ids;
}

/** Merge changes of a file since the common version `base` into the open notebook. */
export function mergeNotebook(
  base: readonly ICellState[],
  ours: readonly ICellState[],
  theirs: readonly IFileCell[],
  newId: () => string
): INotebookMerge {
  const was = byId(base);
  const open = byId(ours);
  const now = byId(theirs);
  const added = new Map<string, IFileCell>();
  const edits = new Map<string, ICellEdit>();
  const conflicts: string[] = [];
  for (const cell of theirs) {
    const mine = open.get(cell.id);
    const old = was.get(cell.id);
    if (mine && old) {
      const { edit, isConflict } = mergeCell(old, mine, cell);
      if (edit) {
        edits.set(cell.id, edit);
      }
      if (isConflict) {
        const copy = { ...cell, id: newId(), rest: '', outputs: [] };
        added.set(copy.id, copy);
        conflicts.push(cell.id, copy.id);
      }
    } else if (!mine && (!old || !isSame(old, cell))) {
      // New, or changed there while deleted here.
      added.set(cell.id, cell);
    }
  }
  const moved = movedIds(base, theirs, open);
  const staying = ours
    .filter(cell => {
      const old = was.get(cell.id);
      const isDeleted = old && !now.has(cell.id) && isSame(old, cell);
      return !isDeleted && !moved.has(cell.id);
    })
    .map(({ id }) => id);
  const order = placed(
    staying,
    theirs.map(({ id }) => id),
    id => moved.has(id) || added.has(id)
  );
  for (let n = 0; n < conflicts.length; n += 2) {
    order.splice(order.indexOf(conflicts[n]!) + 1, 0, conflicts[n + 1]!);
  }
  return {
    order,
    added,
    restored: new Set([...added.keys()].filter(id => was.has(id))),
    moved,
    edits,
    conflicts: conflicts.filter((_, n) => n % 2 === 0)
  };
}

function byId<T extends ICellState>(cells: readonly T[]): Map<string, T> {
  return new Map(cells.map(cell => [cell.id, cell]));
}

function isSame(a: ICellState, b: ICellState): boolean {
  return (
    a.type === b.type &&
    a.source === b.source &&
    a.rest === b.rest &&
    canonical(a.metadata) === canonical(b.metadata)
  );
}

function mergeCell(
  old: ICellState,
  mine: ICellState,
  cell: IFileCell
): { edit: ICellEdit | null; isConflict: boolean } {
  if (isSame(old, cell)) {
    return { edit: null, isConflict: false };
  }
  const source = mergedText(mergeText(old.source, mine.source, cell.source));
  const edit = {
    source: source ?? mine.source,
    type: mine.type === old.type ? cell.type : mine.type,
    metadata: metadataEdit(old.metadata, mine.metadata, cell.metadata),
    rest: takesRest(old, mine, cell) ? cell : null
  };
  return { edit, isConflict: source === null };
}

/**
 * Return whether to take the outputs of the file: of two runs those of the later one.
 *
 * Editors that drop outputs do not remove those that the person sees.
 */
function takesRest(
  old: ICellState,
  mine: ICellState,
  cell: IFileCell
): boolean {
  const isDropped =
    cell.type === 'code' && cell.outputs.length === 0 && cell.count === null;
  return (
    cell.rest !== old.rest &&
    (mine.rest === old.rest || (cell.count ?? 0) > (mine.count ?? 0)) &&
    !(isDropped && cell.source !== old.source)
  );
}

/** Return the keys that changed in the file but not in the open notebook. */
export function metadataEdit(
  old: PartialJSONObject,
  mine: PartialJSONObject,
  theirs: PartialJSONObject
): ReadonlyMap<string, PartialJSONValue | undefined> {
  const keys = new Set([...Object.keys(old), ...Object.keys(theirs)]);
  return new Map(
    [...keys]
      .filter(
        key =>
          canonical(old[key]) !== canonical(theirs[key]) &&
          canonical(old[key]) === canonical(mine[key])
      )
      .map(key => [key, theirs[key]])
  );
}

/** Return cells that moved relative to the other common cells. */
function movedIds(
  base: readonly ICellState[],
  theirs: readonly ICellState[],
  open: ReadonlyMap<string, ICellState>
): ReadonlySet<string> {
  const was = byId(base);
  const now = byId(theirs);
  const before = base.filter(({ id }) => now.has(id)).map(({ id }) => id);
  const after = theirs.filter(({ id }) => was.has(id)).map(({ id }) => id);
  const moved = diffIndices(before, after).flatMap(
    ({ buffer2Content }) => buffer2Content
  );
  return new Set(moved.filter(id => open.has(id)));
}

/** Return the ids that stay in place when a list is reordered, including the pinned one. */
export function stayingIds(
  from: readonly string[],
  to: readonly string[],
  pinned: string | null
): ReadonlySet<string> {
  const at = pinned === null ? -1 : from.indexOf(pinned);
  const then = pinned === null ? -1 : to.indexOf(pinned);
  return at < 0 || then < 0
    ? new Set(common(from, to))
    : new Set([
        ...common(from.slice(0, at), to.slice(0, then)),
        from[at]!,
        ...common(from.slice(at + 1), to.slice(then + 1))
      ]);
}

function common(from: readonly string[], to: readonly string[]): string[] {
  const removed = new Set(
    diffIndices([...from], [...to]).flatMap(
      ({ buffer1Content }) => buffer1Content
    )
  );
  return from.filter(id => !removed.has(id));
}

/** Insert cells, each below its predecessor in the file. */
export function placed(
  staying: readonly string[],
  file: readonly string[],
  isPlaced: (id: string) => boolean
): string[] {
  const order = [...staying];
  let above = -1;
  for (const id of file) {
    if (isPlaced(id)) {
      order.splice(above + 1, 0, id);
      above += 1;
    } else {
      const index = order.indexOf(id);
      above = index < 0 ? above : index;
    }
  }
  return order;
}
