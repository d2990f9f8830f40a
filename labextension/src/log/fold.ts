import type { ICard } from '../events/card.js';
import { text } from '../events/wire.js';
import { trans } from '../translation.js';
import { editedCell } from './edit.js';
import { kind, summary } from './summary.js';

/** Sum up cards of one kind, such as “Ran 3 cells”. */
export function foldLabel(cards: readonly ICard[]): string {
  const count = cards.length;
  const files = new Map(
    cards.map(card => [text(card.action?.args, 'path'), summary(card).title])
  );
  switch (kind(cards[0]!)) {
    case 'run':
      return trans._n('Ran %1 command', 'Ran %1 commands', count);
    case 'cell':
      return trans._n('Ran %1 cell', 'Ran %1 cells', count);
    case 'browse':
      return trans._n('Browsed, %1 step', 'Browsed, %1 steps', count);
    case 'tool':
      return trans._n('Used %1 tool', 'Used %1 tools', count);
    case 'read':
      return trans._n('Read %1 file', 'Read %1 files', files.size);
    case 'write':
    case 'edit':
      return editsLabel(cards, files);
    default:
      return trans._n('%1 action', '%1 actions', count);
  }
}

function editsLabel(
  cards: readonly ICard[],
  files: ReadonlyMap<string, string>
): string {
  if (files.size > 1) {
    return trans._n('Edited %1 file', 'Edited %1 files', files.size);
  }
  const [name = ''] = files.values();
  const cells = new Set(
    cards.map(({ action }) => editedCell(action)).filter(cell => cell !== null)
  );
  return cells.size > 0
    ? trans._n('Edited %2, %1 cell', 'Edited %2, %1 cells', cells.size, name)
    : trans._n('Edited %2, %1 time', 'Edited %2, %1 times', cards.length, name);
}
