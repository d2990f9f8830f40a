/** Three-way merges of notebooks, cell by cell. */
import type { ICell, IOutput } from '@jupyterlab/nbformat';
import type { PartialJSONObject, PartialJSONValue } from '@lumino/coreutils';
import { diffIndices } from 'node-diff3';

import { mergedText, mergeText } from './text.js';

/** A cell as far as merges look at it. */
export interface ICellState {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly metadata: PartialJSONObject;
  /** Changes with the outputs, the execution count and the attachments. */
  readonly rest: string;
}

/** A cell of a file, with what is not compared but taken over. */
export interface IFileCell extends ICellState {
  readonly outputs: readonly IOutput[];
  readonly count: number | null;
  readonly attachments: PartialJSONObject | undefined;
}

/** What becomes of a cell that stays. */
export interface ICellEdit {
  readonly source: string;
  readonly type: string;
  /** By key; undefined where it goes. */
  readonly metadata: ReadonlyMap<string, PartialJSONValue | undefined>;
  /** Whose outputs and attachments it gets; null where its own stay. */
  readonly rest: IFileCell | null;
}

/** How an open notebook becomes the merged one. */
export interface INotebookMerge {
  /** Ids of the merged cells in their order. */
  readonly order: readonly string[];
  /** Cells that the open notebook does not have. */
  readonly added: ReadonlyMap<string, IFileCell>;
  /** Ids of added cells that were deleted here, and come back with a change. */
  readonly restored: ReadonlySet<string>;
  /** Ids of cells that are to be elsewhere. */
  readonly moved: ReadonlySet<string>;
  readonly edits: ReadonlyMap<string, ICellEdit>;
  /** Ids of the cells of which both versions are kept, each above the file's. */
  readonly conflicts: readonly string[];
}

/** JSON with keys in order and texts in one piece, in which equal values are equal. */
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

/** Notebook files have texts as lists of lines. */
function joined(value: unknown): unknown {
  return Array.isArray(value) &&
    value.length > 0 &&
    value.every(line => typeof line === 'string')
    ? value.join('')
    : value;
}

/** A short text that differs where texts do. */
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

/** A cell of the notebook format under an id. */
export function fileCell(cell: ICell, id: string): IFileCell {
  const { trusted: _, ...metadata } = cell.metadata as PartialJSONObject;
  const outputs = (cell.outputs ?? []) as IOutput[];
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

/** A cell without what is not compared, so that remembering it costs little. */
export function cellState(cell: ICell, id: string): ICellState {
  const { type, source, metadata, rest } = fileCell(cell, id);
  return { id, type, source, metadata, rest };
}

/**
 * The cells of a file, under ids.
 *
 * @param cells - Of the notebook format; before 4.5 they have no ids.
 * @param base - What the file was before, whose ids cells without one take over.
 * @param newId - Makes an id.
 */
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
    const gone = base.slice(buffer1[0], buffer1[0] + buffer1[1]);
    for (; to < buffer2[0] + buffer2[1]; to++) {
      const like = gone.findIndex(({ type }) => type === now[to]!.type);
      ids[to] = like < 0 ? newId() : gone.splice(0, like + 1).at(-1)!.id;
    }
    from = buffer1[0] + buffer1[1];
  }
  keep(base.length);
  return ids;
}

/**
 * Merge what happened to a file into the notebook that a person has open.
 *
 * @param base - The file as the open notebook was last the same as it.
 * @param ours - The open notebook.
 * @param theirs - The file as it is now.
 * @param newId - Makes an id.
 */
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
      // New, or changed there while it was deleted here.
      added.set(cell.id, cell);
    }
  }
  const moved = movedIds(base, theirs, open);
  const kept = ours
    .filter(cell => {
      const old = was.get(cell.id);
      const isDeleted = old && !now.has(cell.id) && isSame(old, cell);
      return !isDeleted && !moved.has(cell.id);
    })
    .map(({ id }) => id);
  const order = placed(
    kept,
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

/** Outputs that the person sees stay until there are others: editors of files drop them. */
function takesRest(
  old: ICellState,
  mine: ICellState,
  cell: IFileCell
): boolean {
  const isDropped = cell.type === 'code' && cell.outputs.length === 0;
  return (
    cell.rest !== old.rest &&
    mine.rest === old.rest &&
    !(isDropped && cell.source !== old.source)
  );
}

/** The keys that the file changed, and the open notebook did not. */
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

/** Cells that are not where they were, in relation to the others that both have. */
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

/** The ids that stay in place while a list becomes another, among them the pinned one. */
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
  const gone = new Set(
    diffIndices([...from], [...to]).flatMap(
      ({ buffer1Content }) => buffer1Content
    )
  );
  return from.filter(id => !gone.has(id));
}

/** Ids with others put in, each below the one that is above it in the file. */
function placed(
  kept: readonly string[],
  file: readonly string[],
  isPlaced: (id: string) => boolean
): string[] {
  const order = [...kept];
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
