/** Reading open documents and applying merges to them. */
import type {
  SharedCell,
  YBaseCell,
  YCodeCell,
  YFile,
  YMarkdownCell,
  YNotebook
} from '@jupyter/ydoc';
import type { IBaseCellMetadata, ICell, IOutput } from '@jupyterlab/nbformat';
import type { PartialJSONObject } from '@lumino/coreutils';

import {
  cellState,
  stayingIds,
  type ICellEdit,
  type ICellState,
  type IFileCell,
  type INotebookMerge
} from './cells.js';
import { textEdits } from './text.js';

type LiveCell = YBaseCell<IBaseCellMetadata>;

export function openCells(notebook: YNotebook): readonly ICellState[] {
  return notebook.cells.map(cell =>
    cellState(cell.toJSON() as ICell, cell.getId())
  );
}

/** Replace the text of an open document as one undoable step. */
export function setText(shared: YFile | LiveCell, text: string): void {
  const edits = textEdits(shared.getSource(), text);
  if (edits.length === 0) {
    return;
  }
  shared.undoManager?.stopCapturing();
  shared.transact(() => {
    for (const { start, end, value } of edits) {
      shared.updateSource(start, end, value);
    }
  });
  shared.undoManager?.stopCapturing();
}

/**
 * Apply a merge to an open notebook: texts cell by cell, then the order of cells as one step.
 * @param focused - The edited cell. Others move around it, because moving a cell loses the cursor.
 */
export function applyMerge(
  notebook: YNotebook,
  merge: INotebookMerge,
  focused: string | null
): void {
  const retyped = new Set<string>();
  for (const cell of notebook.cells as LiveCell[]) {
    const edit = merge.edits.get(cell.getId());
    if (edit) {
      applyEdit(cell, edit);
      if (edit.type !== cell.cell_type) {
        retyped.add(cell.getId());
      }
    }
  }
  const now = notebook.cells.map(cell => cell.getId());
  const inPlace = stayingIds(now, merge.order, focused);
  const stays = (id: string) => inPlace.has(id) && !retyped.has(id);
  if (
    merge.order.every(stays) &&
    merge.order.length === notebook.cells.length &&
    merge.added.size === 0
  ) {
    return;
  }
  const clones = new Map<string, SharedCell.Cell>();
  // Keep the redo stack unless it could duplicate a restored cell.
  const keepsRedo = merge.restored.size === 0 && now.every(stays);
  asOneStep(notebook, keepsRedo, () => {
    for (let n = notebook.cells.length - 1; n >= 0; n--) {
      const cell = notebook.getCell(n) as LiveCell;
      const id = cell.getId();
      if (!stays(id)) {
        const type = merge.edits.get(id)?.type ?? cell.cell_type;
        clones.set(id, cellOfType(cell.toJSON() as ICell, id, type));
        notebook.deleteCell(n);
      }
    }
    merge.order.forEach((id, n) => {
      const added = merge.added.get(id);
      const cell = added ? newCell(added) : clones.get(id);
      if (cell) {
        notebook.insertCell(n, cell);
      }
    });
  });
}

/**
 * Make changes that are undone together, keeping earlier undone changes for a redo if asked.
 *
 * This is not one transaction, because JupyterLab updates the active cell while it processes the
 * transaction, and would focus another cell.
 */
function asOneStep(
  notebook: YNotebook,
  keepsRedo: boolean,
  change: () => void
): void {
  const { undoManager } = notebook;
  const { captureTimeout, redoStack } = undoManager;
  undoManager.stopCapturing();
  undoManager.captureTimeout = Infinity;
  if (keepsRedo) {
    undoManager.redoStack = [];
  }
  try {
    change();
  } finally {
    if (keepsRedo) {
      undoManager.redoStack = redoStack;
    }
    undoManager.captureTimeout = captureTimeout;
    undoManager.stopCapturing();
  }
}

function applyEdit(cell: LiveCell, edit: ICellEdit): void {
  setText(cell, edit.source);
  for (const [key, value] of edit.metadata) {
    if (value === undefined) {
      cell.deleteMetadata(key);
    } else {
      cell.setMetadata(key, value);
    }
  }
  if (!edit.rest) {
    return;
  }
  if (cell.cell_type === 'code') {
    const code = cell as unknown as YCodeCell;
    // A running cell keeps its own outputs.
    if (code.executionState !== 'running') {
      setOutputs(code, edit.rest.outputs);
      code.execution_count = edit.rest.count;
    }
  } else {
    (cell as unknown as YMarkdownCell).setAttachments(
      edit.rest.attachments as never
    );
  }
}

/**
 * Replace the outputs of an open cell, in two changes.
 *
 * In a single one, JupyterLab shows the new outputs before it removes the old ones: it appends a
 * stream to the old stream, and then removes both.
 */
function setOutputs(cell: YCodeCell, outputs: readonly IOutput[]): void {
  cell.setOutputs([]);
  cell.setOutputs([...outputs]);
}

function newCell(cell: IFileCell): SharedCell.Cell {
  const { id, type, source, metadata, outputs, count, attachments } = cell;
  return cellOfType(
    {
      cell_type: type,
      source,
      metadata: metadata as ICell['metadata'],
      outputs: [...outputs],
      execution_count: count,
      ...(attachments ? { attachments } : {})
    } as ICell,
    id,
    type
  );
}

/** Convert a cell to a type, with the fields of that type. */
function cellOfType(cell: ICell, id: string, type: string): SharedCell.Cell {
  const { outputs, execution_count, attachments, ...common } = cell;
  const own =
    type === 'code'
      ? { outputs: outputs ?? [], execution_count: execution_count ?? null }
      : attachments
        ? { attachments }
        : {};
  return { ...common, ...own, id, cell_type: type } as SharedCell.Cell;
}

/** Apply changes to a notebook's metadata. */
export function setMetadata(
  notebook: YNotebook,
  changes: ReadonlyMap<string, unknown>
): void {
  for (const [key, value] of changes) {
    if (value === undefined) {
      notebook.deleteMetadata(key);
    } else {
      notebook.setMetadata(key, value as PartialJSONObject);
    }
  }
}
