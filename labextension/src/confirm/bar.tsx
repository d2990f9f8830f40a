import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { ICard, IConfirmation } from '../events/card.js';
import { summary } from '../log/summary.js';
import { failureLabel, reasonLabel } from './labels.js';

interface IConfirmBarProps {
  card: ICard;
  confirmation: IConfirmation;
  onDecide: (card: ICard, approve: boolean) => void;
  trans: TranslationBundle;
}

/** Below a card that waits: why, and the two things that a person can say. */
export function ConfirmBar(props: IConfirmBarProps) {
  const { card, confirmation, onDecide, trans } = props;
  const { title } = summary(card);
  const reasonId = `oh-reason-${card.key}`;
  const decide = (button: HTMLElement, approve: boolean) => {
    // The buttons are about to go: the keyboard goes on from the card.
    button
      .closest('.oh-Card')
      ?.querySelector<HTMLElement>('.oh-Card-header')
      ?.focus();
    onDecide(card, approve);
  };
  return (
    <div
      className="oh-Confirm"
      role="group"
      aria-label={trans.__('Decide on %1', title)}
      aria-busy={confirmation.busy}
    >
      <p className="oh-Confirm-reason" id={reasonId}>
        {reasonLabel(confirmation.reason, trans)}
      </p>
      <div className="oh-Confirm-buttons">
        <button
          className="jp-mod-styled jp-mod-accept"
          aria-label={trans.__('Approve %1', title)}
          aria-describedby={reasonId}
          disabled={confirmation.busy}
          onClick={({ currentTarget }) => decide(currentTarget, true)}
        >
          {trans.__('Approve')}
        </button>
        <button
          className="jp-mod-styled jp-mod-reject"
          aria-label={trans.__('Reject %1', title)}
          aria-describedby={reasonId}
          disabled={confirmation.busy}
          onClick={({ currentTarget }) => decide(currentTarget, false)}
        >
          {trans.__('Reject')}
        </button>
      </div>
      {confirmation.error && (
        <p className="oh-Confirm-error" role="alert" title={confirmation.error}>
          {failureLabel(confirmation.error, trans)}
        </p>
      )}
    </div>
  );
}
