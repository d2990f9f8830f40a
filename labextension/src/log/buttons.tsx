import * as React from 'react';

import type { ICard } from '../events/card.js';
import { trans } from '../translation.js';

/** Button that interrupts a card's action. */
export function StopButton({
  card,
  title,
  reachable,
  onStop
}: {
  card: ICard;
  title: string;
  /** Whether the Tab key reaches it. */
  reachable: boolean;
  onStop: (card: ICard) => void;
}) {
  return (
    <button
      className="oh-AddCell oh-Stop"
      aria-label={trans.__('Stop %1', title)}
      title={trans.__('Interrupt it')}
      tabIndex={reachable ? 0 : -1}
      onClick={() => onStop(card)}
    >
      <svg className="oh-Icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M4 4h8v8H4z" fill="currentColor" />
      </svg>
    </button>
  );
}

/** Form in which an Action is copied: JSON as agents send it, or a cell that repeats it. */
export type CopyForm = 'json' | 'magic';

/** Buttons that copy the Action of a card. */
export function CopyButtons({
  card,
  onCopy
}: {
  card: ICard;
  onCopy: (card: ICard, form: CopyForm) => void;
}) {
  return (
    <div className="oh-CopyButtons">
      <button className="oh-Copy" onClick={() => onCopy(card, 'magic')}>
        {trans.__('Copy as magic')}
      </button>
      <button className="oh-Copy" onClick={() => onCopy(card, 'json')}>
        {trans.__('Copy as JSON')}
      </button>
    </div>
  );
}
