import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { AddButton } from '../cells/button.js';
import { isCell } from '../cells/cell.js';
import { ConfirmBar } from '../confirm/bar.js';
import type { IVerdict } from '../events/api.js';
import { isLive, type ICard } from '../events/card.js';
import { progressOf, type IProgress } from '../events/progress.js';
import type { IActivity, IOpenCard } from '../tokens.js';
import { KindIcon, OutcomeIcon } from './icons.js';
import {
  doorLabel,
  durationLabel,
  failureLabel,
  kindLabel,
  sourceLabel,
  statusLabel
} from './labels.js';
import { Section } from './section.js';
import { sections, tellsMore } from './sections.js';
import { CopyButtons, StopButton, type CopyForm } from './buttons.js';
import { seconds, status, type IStatus } from './status.js';
import { kind, summary } from './summary.js';

/** What cards can do; it is the same for all. */
export interface ICardActions {
  /** Fetches what was shortened; undefined where no kernel is. */
  onOpen: (card: ICard) => IOpenCard | undefined;
  /** Makes it a cell of the notebook; null where there is none. */
  onAdd: ((card: ICard) => void) | null;
  /** Interrupts it. */
  onStop: (card: ICard) => void;
  /** Copies the Action. */
  onCopy: (card: ICard, form: CopyForm) => void;
  /** Approves an Action that waits, or rejects it. */
  onDecide: (card: ICard, verdict: IVerdict) => void;
  /** Looks how it goes on; null while nobody sees it. */
  onLook: IActivity['look'] | null;
  kernelOf: IActivity['kernelOf'];
  /** Where relative paths start. */
  workspaceDir: string;
}

interface ICardProps {
  card: ICard;
  /** Its place in the list, counted from 1, and how many there are. */
  position: number;
  count: number;
  /** Whether the person has opened or closed it; null if neither. */
  chosen: boolean | null;
  onOpenChange: (key: string, open: boolean) => void;
  /** Whether this card's button is the one that Tab reaches. */
  reachable: boolean;
  /** Whether it can be interrupted. */
  stoppable: boolean;
  onFocus: (key: string) => void;
  actions: ICardActions;
  trans: TranslationBundle;
}

/** An Action and what came of it: a line that opens. */
export const Card = React.memo(function Card(props: ICardProps) {
  const { card, chosen, reachable, stoppable, onFocus, actions, trans } = props;
  const { onOpen, onAdd, onStop, onDecide, workspaceDir } = actions;
  const { title, detail } = summary(card, workspaceDir);
  const progress = useProgress(card, actions.onLook);
  const state = status(card, progress?.state === 'queued');
  // Nobody is to decide on what they have not seen.
  const open = chosen ?? (card.confirmation !== null && tellsMore(card));
  const label = kindLabel(kind(card), trans);
  const addable = onAdd !== null && isCell(card);
  const bodyId = `oh-body-${card.key}`;
  return (
    <article
      className={`oh-Card oh-mod-${kind(card)} oh-mod-${state.outcome} ${open ? 'oh-mod-open' : ''} ${addable || stoppable ? 'oh-mod-addable' : ''}`}
      aria-label={[label, title, statusLabel(state, trans)].join(', ')}
      aria-posinset={props.position}
      aria-setsize={props.count}
    >
      <button
        className="oh-Card-header"
        aria-expanded={open}
        aria-controls={bodyId}
        tabIndex={reachable ? 0 : -1}
        title={title}
        onClick={() => props.onOpenChange(card.key, !open)}
        onFocus={() => onFocus(card.key)}
      >
        <KindIcon kind={kind(card)} />
        <span className="oh-Card-title">
          {title || label}
          {detail && <span className="oh-Card-detail">{detail}</span>}
        </span>
        <OutcomeIcon outcome={state.outcome} />
        <Facts
          card={card}
          kernel={actions.kernelOf(card)}
          state={state}
          label={label}
          trans={trans}
        />
      </button>
      {addable && (
        <AddButton
          card={card}
          reachable={reachable}
          onAdd={onAdd}
          trans={trans}
        />
      )}
      {stoppable && (
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
          <Body
            card={card}
            onOpen={onOpen}
            workspaceDir={workspaceDir}
            trans={trans}
          />
          {card.action && (
            <CopyButtons card={card} onCopy={actions.onCopy} trans={trans} />
          )}
        </div>
      )}
      {progress?.text && (
        <pre
          className="oh-Text oh-Live"
          tabIndex={0}
          aria-label={trans.__('Output so far')}
        >
          {progress.text}
        </pre>
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

/** How a card that is pending goes on, while somebody looks. */
function useProgress(
  card: ICard,
  onLook: ICardActions['onLook']
): IProgress | null {
  const [progress, setProgress] = React.useState<IProgress | null>(null);
  const { key, generation, id, confirmation } = card;
  const goesOn =
    isLive(card) && status(card).outcome === 'running' && confirmation === null;
  React.useEffect(() => {
    if (!goesOn || !onLook) {
      return;
    }
    let looking = true;
    void (async () => {
      const news = progressOf(seen => onLook({ generation, id }, seen));
      for await (const each of news) {
        if (!looking) {
          return;
        }
        setProgress(each);
      }
    })();
    return () => {
      looking = false;
      setProgress(null);
    };
  }, [key, goesOn, onLook]);
  return goesOn ? progress : null;
}

function Facts({
  card,
  kernel,
  state,
  label,
  trans
}: {
  card: ICard;
  /** Which of several it is of. */
  kernel: string;
  state: IStatus;
  label: string;
  trans: TranslationBundle;
}) {
  const event = card.action ?? card.observation;
  const took = seconds(card);
  const { decidedBy = '', queuedSeconds = 0 } =
    card.observation?.handling ?? {};
  const door = doorLabel(decidedBy, trans);
  const decided =
    state.outcome === 'rejected' ? door : trans.__('approved: %1', door);
  return (
    <span className="oh-Card-facts">
      <span className="oh-Card-kind">{label}</span>
      {kernel && (
        <span className="oh-Badge oh-Card-kernel">
          {trans.__('kernel %1', kernel)}
        </span>
      )}
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
      {decidedBy && (
        <span className="oh-Card-decided" title={decided}>
          {decided}
        </span>
      )}
      <span className="oh-Card-times">
        {queuedSeconds > 0 && (
          <span className="oh-Card-took">
            {trans.__('queued %1', durationLabel(queuedSeconds, trans))}
          </span>
        )}
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
  workspaceDir,
  trans
}: {
  card: ICard;
  onOpen: ICardActions['onOpen'];
  workspaceDir: string;
  trans: TranslationBundle;
}) {
  const [failure, setFailure] = React.useState<unknown>(null);
  React.useEffect(() => {
    let shown = true;
    const opened = onOpen(card);
    opened?.ready.then(
      () => shown && setFailure(null),
      (error: unknown) => shown && setFailure(error)
    );
    return () => {
      shown = false;
      opened?.close();
    };
    // Asked again when another Observation arrives while the card is open.
  }, [card.key, card.observation?.id, onOpen]);

  const parts = sections(card);
  return (
    <>
      {parts.map((section, index) => (
        <Section
          key={index}
          section={section}
          whole={card.confirmation !== null}
          workspaceDir={workspaceDir}
          trans={trans}
        />
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
