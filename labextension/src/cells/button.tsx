import * as React from 'react';

import type { ICard } from '../events/card.js';
import { trans } from '../translation.js';

interface IAddButtonProps {
  card: ICard;
  /** Whether the Tab key reaches it. */
  reachable: boolean;
  onAdd: (card: ICard) => void;
}

/** Button that adds a card to the notebook, or shows its cell. */
export function AddButton({ card, reachable, onAdd }: IAddButtonProps) {
  const label = trans.__('Add to notebook');
  return (
    <button
      className="oh-AddCell"
      aria-label={label}
      title={label}
      tabIndex={reachable ? 0 : -1}
      onClick={() => onAdd(card)}
    >
      <svg className="oh-Icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M13 7.5V3H3v10h4.5M11.5 9v5M9 11.5h5" />
      </svg>
    </button>
  );
}
