import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICard } from '../events/card.js';

interface IAddButtonProps {
  card: ICard;
  /** Whether Tab reaches it. */
  reachable: boolean;
  onAdd: (card: ICard) => void;
  trans: TranslationBundle;
}

/** Makes a card a cell of the notebook, or shows the cell that it has become. */
export function AddButton({ card, reachable, onAdd, trans }: IAddButtonProps) {
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
