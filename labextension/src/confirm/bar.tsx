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
import { QuestionBar } from './question.js';

interface IConfirmBarProps {
  card: ICard;
  confirmation: IConfirmation;
  onDecide: (card: ICard, verdict: IVerdict) => void;
}

/** Bar below a pending card: the form of a question, or the buttons to decide. */
export function ConfirmBar(props: IConfirmBarProps) {
  const { form, expires } = props.confirmation;
  return form === null ? (
    <ApprovalBar {...props} />
  ) : (
    <QuestionBar
      {...props}
      form={form}
      countdown={<Countdown expires={expires} />}
    />
  );
}

/** Reasons of rejections that a person is typing, by card: a card may be drawn again meanwhile. */
const drafts = new Map<string, string>();

/** Reason, countdown, and the buttons to decide. */
function ApprovalBar(props: IConfirmBarProps) {
  const { card, confirmation, onDecide } = props;
  const { title } = summary(card);
  const reasonId = `oh-reason-${card.key}`;
  // The reason's field is shown once the person has chosen to reject.
  const [why, showWhy] = React.useState(drafts.get(card.key) ?? null);
  const setWhy = (text: string | null) => {
    if (text === null) {
      drafts.delete(card.key);
    } else {
      drafts.set(card.key, text);
    }
    showWhy(text);
  };
  const decide = (element: HTMLElement, verdict: IVerdict) => {
    drafts.delete(card.key);
    // The buttons disappear, so focus moves to the card.
    element
      .closest('.oh-Card')
      ?.querySelector<HTMLElement>('.oh-Card-header')
      ?.focus();
    onDecide(card, verdict);
  };
  const reject = (element: HTMLElement) =>
    why === null ? setWhy('') : decide(element, { approve: false, why });
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
          aria-expanded={why !== null}
          disabled={confirmation.busy}
          onClick={({ currentTarget }) => reject(currentTarget)}
        >
          {trans.__('Reject')}
        </button>
        {/* In the same row, so that the buttons stay where they are. */}
        {why === null ? (
          <AllowMenu
            reasonId={reasonId}
            disabled={isBlocked}
            onAllow={(element, more) =>
              decide(element, { approve: true, ...more })
            }
          />
        ) : (
          <RejectionReason
            title={title}
            why={why}
            disabled={confirmation.busy}
            onChange={setWhy}
            onReject={reject}
          />
        )}
      </div>
      {confirmation.error && (
        <p className="oh-Confirm-error" role="alert" title={confirmation.error}>
          {failureLabel(confirmation.error)}
        </p>
      )}
    </div>
  );
}

/** Approvals that also cover later actions of the kind. */
function AllowMenu(props: {
  reasonId: string;
  disabled: boolean;
  onAllow: (element: HTMLElement, more: Partial<IVerdict>) => void;
}) {
  const { reasonId, disabled, onAllow } = props;
  return (
    <details className="oh-Allow">
      <summary className="jp-mod-styled">{trans.__('Allow…')}</summary>
      <button
        className="jp-mod-styled"
        aria-describedby={reasonId}
        title={trans.__(
          'Until the kernel restarts, start actions of this type without asking if the reasons are the same'
        )}
        disabled={disabled}
        onClick={({ currentTarget }) =>
          onAllow(currentTarget, { forSession: true })
        }
      >
        {trans.__('Allow this kind for the session')}
      </button>
      <button
        className="jp-mod-styled"
        aria-describedby={reasonId}
        title={trans.__(
          'In this workspace, start actions of this type without asking if the reasons are the same; %oh_confirm --rules lists and --forget revokes that'
        )}
        disabled={disabled}
        onClick={({ currentTarget }) =>
          onAllow(currentTarget, { forWorkspace: true })
        }
      >
        {trans.__('Always allow this kind in this workspace')}
      </button>
    </details>
  );
}

/** Field for what the agent reads with the rejection; Enter rejects, Esc returns. */
function RejectionReason(props: {
  title: string;
  why: string;
  disabled: boolean;
  onChange: (why: string | null) => void;
  onReject: (element: HTMLElement) => void;
}) {
  const { title, why, disabled, onChange, onReject } = props;
  const field = React.useRef<HTMLInputElement>(null);
  // Not by `autoFocus`, which browsers ignore in the frame of an MCP App.
  React.useEffect(() => field.current?.focus(), []);
  return (
    <input
      ref={field}
      className="jp-mod-styled oh-Confirm-why"
      placeholder={trans.__('Reason for the agent (optional), then Enter')}
      aria-label={trans.__('Reason for the agent if you reject %1', title)}
      value={why}
      disabled={disabled}
      onChange={({ target }) => onChange(target.value)}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Enter') {
          onReject(event.currentTarget);
        } else if (event.key === 'Escape') {
          onChange(null);
        }
      }}
    />
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
