import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICard } from '../events/card.js';

/** Interrupts what a card is doing. */
export function StopButton({
  card,
  title,
  reachable,
  onStop,
  trans
}: {
  card: ICard;
  title: string;
  /** Whether Tab reaches it. */
  reachable: boolean;
  onStop: (card: ICard) => void;
  trans: TranslationBundle;
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

/** How an Action is copied: as agents send it, or as a cell that does it again. */
export type CopyForm = 'json' | 'magic';

/** Copy the Action of a card. */
export function CopyButtons({
  card,
  onCopy,
  trans
}: {
  card: ICard;
  onCopy: (card: ICard, form: CopyForm) => void;
  trans: TranslationBundle;
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
