import * as React from 'react';

import type { IVerdict } from '../events/api.js';
import type { ICard, IConfirmation } from '../events/card.js';
import { summary } from '../log/summary.js';
import { trans } from '../translation.js';
import {
  agentLabel,
  expiryLabel,
  failureLabel,
  reasonLabel,
  sandboxLabel
} from './labels.js';

interface IConfirmBarProps {
  card: ICard;
  confirmation: IConfirmation;
  onDecide: (card: ICard, verdict: IVerdict) => void;
}

/** Bar below a pending card: reason, countdown, and the buttons to decide. */
export function ConfirmBar(props: IConfirmBarProps) {
  const { card, confirmation, onDecide } = props;
  const { title } = summary(card);
  const reasonId = `oh-reason-${card.key}`;
  const [why, setWhy] = React.useState('');
  const decide = (element: HTMLElement, verdict: IVerdict) => {
    // The buttons disappear, so focus moves to the card.
    element
      .closest('.oh-Card')
      ?.querySelector<HTMLElement>('.oh-Card-header')
      ?.focus();
    onDecide(card, verdict);
  };
  const reject = (element: HTMLElement) =>
    decide(element, { approve: false, why });
  // A clipped action cannot be approved; the full one is loading.
  const isBlocked = confirmation.busy || card.action?.clipped === true;
  return (
    <div
      className="oh-Confirm"
      role="group"
      aria-label={trans.__('Decide on %1', title)}
      aria-busy={confirmation.busy}
    >
      {confirmation.agent !== '' && (
        <p className="oh-Confirm-agent">{agentLabel(confirmation.agent)}</p>
      )}
      <p className="oh-Confirm-reason" id={reasonId}>
        {reasonLabel(confirmation.reason)}
      </p>
      {confirmation.sandboxed !== null && (
        <p className="oh-Confirm-sandbox">
          {sandboxLabel(confirmation.sandboxed)}
        </p>
      )}
      <Countdown expires={confirmation.expires} />
      <div className="oh-Confirm-buttons">
        <button
          className="jp-mod-styled jp-mod-accept"
          aria-label={trans.__('Approve %1', title)}
          aria-describedby={reasonId}
          disabled={isBlocked}
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
            'Until the kernel restarts, start actions of this type without asking if the reasons are the same'
          )}
          disabled={isBlocked}
          onClick={({ currentTarget }) =>
            decide(currentTarget, { approve: true, forSession: true })
          }
        >
          {trans.__('Allow for this session')}
        </button>
        <button
          className="jp-mod-styled oh-Confirm-session"
          aria-describedby={reasonId}
          title={trans.__(
            'In this workspace, start actions of this type without asking if the reasons are the same; %oh_confirm --rules lists and --forget revokes that'
          )}
          disabled={isBlocked}
          onClick={({ currentTarget }) =>
            decide(currentTarget, { approve: true, forWorkspace: true })
          }
        >
          {trans.__('Always allow here')}
        </button>
      </div>
      <input
        className="jp-mod-styled oh-Confirm-why"
        placeholder={trans.__('Reason for a rejection (for the agent)')}
        aria-label={trans.__('Reason for the agent if you reject %1', title)}
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
          {failureLabel(confirmation.error)}
        </p>
      )}
    </div>
  );
}

/** Time until automatic rejection. */
function Countdown({ expires }: { expires: number | null }) {
  const [now, setNow] = React.useState(Date.now);
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return expires === null ? null : (
    <p className="oh-Confirm-countdown" role="timer">
      {expiryLabel(Math.max(0, expires - now) / 1000)}
    </p>
  );
}
