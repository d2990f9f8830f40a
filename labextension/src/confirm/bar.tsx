import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IVerdict } from '../events/api.js';
import type { ICard, IConfirmation } from '../events/card.js';
import { summary } from '../log/summary.js';
import { expiryLabel, failureLabel, reasonLabel } from './labels.js';

interface IConfirmBarProps {
  card: ICard;
  confirmation: IConfirmation;
  onDecide: (card: ICard, verdict: IVerdict) => void;
  trans: TranslationBundle;
}

/** Below a card that waits: why, for how long yet, and what a person can say. */
export function ConfirmBar(props: IConfirmBarProps) {
  const { card, confirmation, onDecide, trans } = props;
  const { title } = summary(card);
  const reasonId = `oh-reason-${card.key}`;
  const [why, setWhy] = React.useState('');
  const decide = (element: HTMLElement, verdict: IVerdict) => {
    // The buttons are about to go: the keyboard goes on from the card.
    element
      .closest('.oh-Card')
      ?.querySelector<HTMLElement>('.oh-Card-header')
      ?.focus();
    onDecide(card, verdict);
  };
  const reject = (element: HTMLElement) =>
    decide(element, { approve: false, why });
  // What is shortened is not approved: its rest is on its way.
  const unseen = confirmation.busy || card.action?.clipped === true;
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
      <Countdown expires={confirmation.expires} trans={trans} />
      <div className="oh-Confirm-buttons">
        <button
          className="jp-mod-styled jp-mod-accept"
          aria-label={trans.__('Approve %1', title)}
          aria-describedby={reasonId}
          disabled={unseen}
          onClick={({ currentTarget }) =>
            decide(currentTarget, { approve: true })
          }
        >
          {trans.__('Approve')}
        </button>
        <button
          className="jp-mod-styled jp-mod-reject"
          aria-label={trans.__('Reject %1', title)}
          aria-describedby={reasonId}
          disabled={confirmation.busy}
          onClick={({ currentTarget }) => reject(currentTarget)}
        >
          {trans.__('Reject')}
        </button>
        <button
          className="jp-mod-styled oh-Confirm-session"
          aria-describedby={reasonId}
          title={trans.__(
            'From now on, actions of this type that wait for the same reasons begin at once, until the kernel restarts'
          )}
          disabled={unseen}
          onClick={({ currentTarget }) =>
            decide(currentTarget, { approve: true, forSession: true })
          }
        >
          {trans.__('Allow such for this session')}
        </button>
      </div>
      <input
        className="jp-mod-styled oh-Confirm-why"
        placeholder={trans.__('Why not? The agent reads it with the rejection')}
        aria-label={trans.__('What the agent is told if you reject %1', title)}
        value={why}
        disabled={confirmation.busy}
        onChange={({ target }) => setWhy(target.value)}
        onKeyDown={event => {
          event.stopPropagation();
          if (event.key === 'Enter' && why.trim() !== '') {
            reject(event.currentTarget);
          }
        }}
      />
      {confirmation.error && (
        <p className="oh-Confirm-error" role="alert" title={confirmation.error}>
          {failureLabel(confirmation.error, trans)}
        </p>
      )}
    </div>
  );
}

/** How long it waits yet, before it is rejected by itself. */
function Countdown({
  expires,
  trans
}: {
  expires: number | null;
  trans: TranslationBundle;
}) {
  const [now, setNow] = React.useState(Date.now);
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return expires === null ? null : (
    <p className="oh-Confirm-countdown" role="timer">
      {expiryLabel(Math.max(0, expires - now) / 1000, trans)}
    </p>
  );
}
