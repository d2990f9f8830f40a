import type { ICard } from '../events/card.js';
import { text, type IAction } from '../events/wire.js';
import { trans } from '../translation.js';

/** Heading of a notebook's cell in a diff: its position, counted from 0, and its id. */
const HEADING = /^[ +-]# %% \[(\d+)\] \w+(?: id=(\S+))?/gm;

/** Longest quotation of a cell. */
const QUOTED_CHARS = 30;

/** Say what an edit does, such as “Edited cell 4 (df = 1)”. */
export function editLabel(card: ICard): string {
  const command = text(card.action?.args, 'command');
  if (command === 'notebook_edit' || editedCell(card.action) !== null) {
    return cellEditLabel(card, text(card.action?.options, 'edit_mode'));
  }
  const labels: Record<string, string> = {
    view: trans.__('Viewed'),
    create: trans.__('Created'),
    str_replace: trans.__('Edited'),
    insert: trans.__('Inserted lines'),
    write: trans.__('Edited'),
    apply_patch: trans.__('Patched'),
    undo_edit: trans.__('Undid an edit'),
    redo_edit: trans.__('Redid an edit')
  };
  return labels[command] ?? command;
}

/** Position, from 0, or id of the cell that an edit is about; null for others. */
export function editedCell(action: IAction | null): number | string | null {
  const cell = action?.options?.cell;
  return typeof cell === 'number' || typeof cell === 'string' ? cell : null;
}

function cellEditLabel(card: ICard, mode: string): string {
  const number = cellNumber(card);
  const source = quoted(text(card.action?.args, 'new_str'));
  const label =
    number === null || mode === 'insert'
      ? unnumberedLabel(mode)
      : numberedLabel(mode, number);
  return source ? `${label} (${source})` : label;
}

function unnumberedLabel(mode: string): string {
  const labels: Record<string, string> = {
    insert: trans.__('Inserted a cell'),
    delete: trans.__('Deleted a cell'),
    move: trans.__('Moved a cell')
  };
  return labels[mode] ?? trans.__('Edited a cell');
}

function numberedLabel(mode: string, number: number): string {
  const labels: Record<string, string> = {
    delete: trans.__('Deleted cell %1', number),
    move: trans.__('Moved cell %1', number)
  };
  return labels[mode] ?? trans.__('Edited cell %1', number);
}

/** Position of the edited cell, counted from 1; null if unknown. */
function cellNumber({
  action,
  observation,
  confirmation
}: ICard): number | null {
  const cell = editedCell(action);
  if (typeof cell === 'number') {
    return cell >= 0 ? cell + 1 : null;
  }
  const diff = text(observation?.extras, 'diff') || (confirmation?.diff ?? '');
  const headings = [...diff.matchAll(HEADING)];
  const heading = headings.find(([, , id]) => id === cell);
  return heading ? Number(heading[1]) + 1 : null;
}

/** First line of a cell, shortened. */
function quoted(source: string): string {
  const lines = source.split('\n').filter(each => each.trim() !== '');
  const first = lines[0]?.trim() ?? '';
  return first.length > QUOTED_CHARS || lines.length > 1
    ? `${first.slice(0, QUOTED_CHARS)}…`
    : first;
}
