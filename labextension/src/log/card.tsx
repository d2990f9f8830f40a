import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { AddButton } from '../cells/button.js';
import { isCell } from '../cells/cell.js';
import { ConfirmBar } from '../confirm/bar.js';
import type { ICard } from '../events/card.js';
import { KindIcon, OutcomeIcon } from './icons.js';
import {
  durationLabel,
  failureLabel,
  kindLabel,
  sourceLabel,
  statusLabel
} from './labels.js';
import { Section } from './section.js';
import { sections, tellsMore } from './sections.js';
import { CopyButton, StopButton } from './buttons.js';
import { seconds, status } from './status.js';
import { kind, summary } from './summary.js';

interface ICardProps {
  card: ICard;
  /** Whether this card's button is the one that Tab reaches. */
  reachable: boolean;
  onOpen: (card: ICard) => Promise<void>;
  onFocus: (key: string) => void;
  /** Makes it a cell of the notebook; null where there is none. */
  onAdd: ((card: ICard) => void) | null;
  /** Interrupts it; null where it cannot be. */
  onStop: ((card: ICard) => void) | null;
  /** Copies the Action as JSON. */
  onCopy: (card: ICard) => void;
  /** Approves an Action that waits, or rejects it. */
  onDecide: (card: ICard, approve: boolean) => void;
  trans: TranslationBundle;
}

/** An Action and what came of it: a line that opens. */
export const Card = React.memo(function Card(props: ICardProps) {
  const { card, reachable, onOpen, onFocus, onAdd, onStop, onDecide, trans } =
    props;
  const [chosen, setOpen] = React.useState<boolean | null>(null);
  const { title, detail } = summary(card);
  const state = status(card);
  // Nobody is to decide on what they have not seen.
  const open = chosen ?? (card.confirmation !== null && tellsMore(card));
  const label = kindLabel(kind(card), trans);
  const addable = onAdd !== null && isCell(card);
  const bodyId = `oh-body-${card.key}`;
  return (
    <article
      className={`oh-Card oh-mod-${kind(card)} oh-mod-${state.outcome} ${open ? 'oh-mod-open' : ''} ${addable || onStop ? 'oh-mod-addable' : ''}`}
      aria-label={[label, title, statusLabel(state, trans)].join(', ')}
    >
      <button
        className="oh-Card-header"
        aria-expanded={open}
        aria-controls={bodyId}
        tabIndex={reachable ? 0 : -1}
        title={title}
        onClick={() => setOpen(!open)}
        onFocus={() => onFocus(card.key)}
      >
        <KindIcon kind={kind(card)} />
        <span className="oh-Card-title">
          {title || label}
          {detail && <span className="oh-Card-detail">{detail}</span>}
        </span>
        <OutcomeIcon outcome={state.outcome} />
        <Facts card={card} label={label} trans={trans} />
      </button>
      {addable && (
        <AddButton
          card={card}
          reachable={reachable}
          onAdd={onAdd}
          trans={trans}
        />
      )}
      {onStop && (
        <StopButton
          card={card}
          title={title}
          reachable={reachable}
          onStop={onStop}
          trans={trans}
        />
      )}
      {open && (
        <div className="oh-Card-body" id={bodyId}>
          <Body card={card} onOpen={onOpen} trans={trans} />
          {card.action && (
            <CopyButton card={card} onCopy={props.onCopy} trans={trans} />
          )}
        </div>
      )}
      {card.confirmation && (
        <ConfirmBar
          card={card}
          confirmation={card.confirmation}
          onDecide={onDecide}
          trans={trans}
        />
      )}
    </article>
  );
});

function Facts({
  card,
  label,
  trans
}: {
  card: ICard;
  label: string;
  trans: TranslationBundle;
}) {
  const event = card.action ?? card.observation;
  const state = status(card);
  const took = seconds(card);
  return (
    <span className="oh-Card-facts">
      <span className="oh-Card-kind">{label}</span>
      {event?.source && (
        <span className={`oh-Badge oh-mod-${event.source}`}>
          {sourceLabel(event.source, trans)}
        </span>
      )}
      {state.outcome !== 'ok' && state.outcome !== 'none' && (
        <span
          className={`oh-Card-status ${card.confirmation ? 'oh-Badge' : ''}`}
        >
          {statusLabel(state, trans)}
        </span>
      )}
      <span className="oh-Card-times">
        {took !== null && (
          <span className="oh-Card-took">{durationLabel(took, trans)}</span>
        )}
        <Time iso={event?.timestamp ?? null} />
      </span>
    </span>
  );
}

function Time({ iso }: { iso: string | null }) {
  const date = new Date(iso ?? '');
  return Number.isNaN(date.getTime()) ? null : (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {date.toLocaleTimeString()}
    </time>
  );
}

function Body({
  card,
  onOpen,
  trans
}: {
  card: ICard;
  onOpen: (card: ICard) => Promise<void>;
  trans: TranslationBundle;
}) {
  const [failure, setFailure] = React.useState<unknown>(null);
  React.useEffect(() => {
    let shown = true;
    onOpen(card).then(
      () => shown && setFailure(null),
      (error: unknown) => shown && setFailure(error)
    );
    return () => {
      shown = false;
    };
    // Asked again when another Observation arrives while the card is open.
  }, [card.key, card.observation?.id, onOpen]);

  const parts = sections(card);
  return (
    <>
      {parts.map((section, index) => (
        <Section key={index} section={section} trans={trans} />
      ))}
      {parts.length === 0 && (
        <p className="oh-Note">{trans.__('There is nothing more to see.')}</p>
      )}
      {failure !== null && (
        <p className="oh-Note">{failureLabel(failure, trans)}</p>
      )}
    </>
  );
}
