import * as React from 'react';

import { isCell } from '../cells/cell.js';
import { ConfirmBar } from '../confirm/bar.js';
import { agentName } from '../events/actor.js';
import type { IProgress } from '../control/operations.js';
import type { IVerdict } from '../events/api.js';
import { isLive, type ICard } from '../events/card.js';
import { progressOf } from '../events/progress.js';
import type { IActivity, IOpenCard } from '../tokens.js';
import { trans } from '../translation.js';
import { Age } from './age.js';
import { KindIcon, OutcomeIcon } from './icons.js';
import {
  deciderLabel,
  durationLabel,
  failureLabel,
  kindLabel,
  sourceLabel,
  statusLabel
} from './labels.js';
import { Section } from './section.js';
import { sections, tellsMore } from './sections.js';
import { CardButton, CopyButtons, type CopyForm } from './buttons.js';
import { seconds, status, type IStatus } from './status.js';
import { kind, summary } from './summary.js';

/** Callbacks and context shared by all cards. */
export interface ICardActions {
  /** Fetches the full card; undefined without a kernel. */
  onOpen: (card: ICard) => IOpenCard | undefined;
  /** Adds it to the notebook; null without one. */
  onAdd: ((card: ICard) => void) | null;
  onStop: (card: ICard) => void;
  onCopy: (card: ICard, form: CopyForm) => void;
  onDecide: (card: ICard, verdict: IVerdict) => void;
  /** Reads its progress; null while the panel is hidden. */
  onLook: IActivity['look'] | null;
  kernelOf: IActivity['kernelOf'];
  /** Directory of relative paths. */
  workspaceDir: string;
}

interface ICardProps {
  card: ICard;
  /** Position in the list, from 1, and length of the list. */
  position: number;
  count: number;
  /** Whether the person opened or closed it; null if neither. */
  chosen: boolean | null;
  onOpenChange: (key: string, open: boolean) => void;
  /** Whether the Tab key reaches this card's button. */
  reachable: boolean;
  stoppable: boolean;
  onFocus: (key: string) => void;
  actions: ICardActions;
}

/** Action with its outcome: a line that opens. */
export const Card = React.memo(function Card(props: ICardProps) {
  const { card, chosen, reachable, stoppable, onFocus, actions } = props;
  const { onOpen, onAdd, onStop, onDecide, workspaceDir } = actions;
  const { title, detail, path = title } = summary(card, workspaceDir);
  const progress = useProgress(card, actions.onLook);
  const state = status(card, progress?.state === 'queued');
  // People must see what they decide on.
  const open = chosen ?? (card.confirmation !== null && tellsMore(card));
  const label = kindLabel(kind(card));
  const addable = onAdd !== null && isCell(card);
  const bodyId = `oh-body-${card.key}`;
  return (
    <article
      className={`oh-Card oh-mod-${kind(card)} oh-mod-${state.outcome} ${open ? 'oh-mod-open' : ''} ${addable || stoppable ? 'oh-mod-addable' : ''}`}
      aria-label={[label, title, statusLabel(state)].join(', ')}
      aria-posinset={props.position}
      aria-setsize={props.count}
    >
      <button
        className="oh-Card-header"
        aria-label={[title || label, detail, label, statusLabel(state)]
          .filter(Boolean)
          .join(', ')}
        aria-expanded={open}
        aria-controls={bodyId}
        tabIndex={reachable ? 0 : -1}
        title={path}
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
        />
      </button>
      {addable && (
        <CardButton
          label={trans.__('Add to notebook')}
          title={trans.__('Add to notebook')}
          reachable={reachable}
          onClick={() => onAdd(card)}
        >
          <path d="M13 7.5V3H3v10h4.5M11.5 9v5M9 11.5h5" />
        </CardButton>
      )}
      {stoppable && (
        <CardButton
          className="oh-Stop"
          label={trans.__('Stop %1', title)}
          title={trans.__('Interrupt it')}
          reachable={reachable}
          onClick={() => onStop(card)}
        >
          <path d="M4 4h8v8H4z" fill="currentColor" />
        </CardButton>
      )}
      {open && (
        <div className="oh-Card-body" id={bodyId}>
          <Body card={card} onOpen={onOpen} workspaceDir={workspaceDir} />
          {card.action && <CopyButtons card={card} onCopy={actions.onCopy} />}
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
        />
      )}
    </article>
  );
});

/** Follow the progress of a pending card while it is visible. */
function useProgress(
  card: ICard,
  onLook: ICardActions['onLook']
): IProgress | null {
  const [progress, setProgress] = React.useState<IProgress | null>(null);
  const { key, generation, id, confirmation } = card;
  const isRunning =
    isLive(card) && status(card).outcome === 'running' && confirmation === null;
  React.useEffect(() => {
    if (!isRunning || !onLook) {
      return;
    }
    let isWanted = true;
    void (async () => {
      const updates = progressOf(seen => onLook({ generation, id }, seen));
      for await (const each of updates) {
        if (!isWanted) {
          return;
        }
        setProgress(each);
      }
    })();
    return () => {
      isWanted = false;
      setProgress(null);
    };
  }, [key, isRunning, onLook]);
  return isRunning ? progress : null;
}

function Facts(props: {
  card: ICard;
  /** Its kernel among several, or "". */
  kernel: string;
  state: IStatus;
  label: string;
}) {
  const { card, kernel, state, label } = props;
  const event = card.action ?? card.observation;
  const took = seconds(card);
  const {
    decidedBy = '',
    queuedSeconds = 0,
    sandboxed
  } = card.observation?.handling ?? {};
  const decider = deciderLabel(decidedBy);
  const decided =
    state.outcome === 'rejected' ? decider : trans.__('approved: %1', decider);
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
          {sourceLabel(event.source, card.action ? agentName(card.action) : '')}
        </span>
      )}
      {state.outcome !== 'ok' && state.outcome !== 'none' && (
        <span
          className={`oh-Card-status ${card.confirmation ? 'oh-Badge' : ''}`}
        >
          {statusLabel(state)}
        </span>
      )}
      {decidedBy && (
        <span className="oh-Card-decided" title={decided}>
          {decided}
        </span>
      )}
      {sandboxed !== undefined && (
        <span className="oh-Badge oh-Card-sandbox">
          {sandboxed ? trans.__('sandboxed') : trans.__('not sandboxed')}
        </span>
      )}
      <span className="oh-Card-times">
        {queuedSeconds >= 1 && (
          <span className="oh-Card-took">
            {trans.__('queued %1', durationLabel(queuedSeconds))}
          </span>
        )}
        {took !== null && took >= 1 && (
          <span className="oh-Card-took">{durationLabel(took)}</span>
        )}
        <Age iso={event?.timestamp ?? null} />
      </span>
    </span>
  );
}

function Body(
  props: Pick<ICardActions, 'onOpen' | 'workspaceDir'> & { card: ICard }
) {
  const { card, onOpen, workspaceDir } = props;
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
    // Fetch again when another Observation arrives while the card is open.
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
        />
      ))}
      {parts.length === 0 && (
        <p className="oh-Note">{trans.__('There is nothing more to see.')}</p>
      )}
      {failure !== null && <p className="oh-Note">{failureLabel(failure)}</p>}
    </>
  );
}
