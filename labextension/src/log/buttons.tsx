import * as React from 'react';

import type { ICard } from '../events/card.js';
import { trans } from '../translation.js';

/** Button with an icon at the edge of a card. */
export function CardButton(props: {
  className?: string;
  label: string;
  title: string;
  /** Whether the Tab key reaches it. */
  reachable: boolean;
  onClick: () => void;
  /** Paths of the icon. */
  children: React.ReactNode;
}) {
  const { className = '', label, title, reachable, onClick, children } = props;
  return (
    <button
      className={`oh-AddCell ${className}`}
      aria-label={label}
      title={title}
      tabIndex={reachable ? 0 : -1}
      onClick={onClick}
    >
      <svg className="oh-Icon" viewBox="0 0 16 16" aria-hidden="true">
        {children}
      </svg>
    </button>
  );
}

/** Form in which an Action is copied: JSON as agents send it, or a cell that repeats it. */
export type CopyForm = 'json' | 'magic';

/** Buttons that copy the Action of a card. */
export function CopyButtons(props: {
  card: ICard;
  onCopy: (card: ICard, form: CopyForm) => void;
}) {
  const { card, onCopy } = props;
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
