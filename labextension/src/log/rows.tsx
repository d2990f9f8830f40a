import { PathExt } from '@jupyterlab/coreutils';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import * as React from 'react';

import { AgentText, Step, TurnStart, turnFacts } from '../agent/parts.js';
import { runsWhenLabel, runsWhenTitle } from '../changes/runs.js';
import { trans } from '../translation.js';
import { Age } from './age.js';
import type { ConversationRow, IGroupRow, ISumRow } from './conversation.js';
import { foldLabel } from './fold.js';
import { KindIcon } from './icons.js';
import { sourceLabel } from './labels.js';
import { kind } from './summary.js';
import { visible } from './visible.js';

/** What a conversation needs besides its rows. */
export interface IConversationActions {
  readonly rendermime: IRenderMimeRegistry | null;
  onReview: () => void;
  /** Offers to undo everything since a checkpoint. */
  onUndo: (checkpoint: number) => void;
}

interface IRowProps {
  row: ConversationRow;
  onOpenChange: (key: string, open: boolean) => void;
  actions: IConversationActions;
}

/** Row of a conversation that is no card. */
export function Row({ row, onOpenChange, actions }: IRowProps) {
  switch (row.row) {
    case 'group':
      return <GroupStart group={row} onOpenChange={onOpenChange} />;
    case 'text':
      return (
        <AgentText
          text={row.text}
          // Growing text is not typeset at every update.
          rendermime={row.isGrowing ? null : actions.rendermime}
        />
      );
    case 'step':
      return <Step step={row.step} />;
    case 'fold':
      return (
        <button
          className="oh-Fold"
          aria-expanded={row.isOpen}
          onClick={() => onOpenChange(row.key, !row.isOpen)}
        >
          <KindIcon kind={kind(row.cards[0]!)} />
          <span className="oh-Fold-label">{foldLabel(row.cards)}</span>
          <Chevron />
        </button>
      );
    case 'sum':
      return <TurnSum sum={row} actions={actions} />;
  }
}

function GroupStart(props: {
  group: IGroupRow;
  onOpenChange: (key: string, open: boolean) => void;
}) {
  const { group, onOpenChange } = props;
  const { turn, cards, source, agent, isOpen, key } = group;
  const first = cards[0]?.action ?? cards[0]?.observation;
  const iso = turn
    ? new Date(turn.began * 1000).toISOString()
    : (first?.timestamp ?? null);
  const name = turn
    ? agent.charAt(0).toUpperCase() + agent.slice(1)
    : sourceLabel(source, agent);
  return (
    <section
      className={`oh-Group ${turn ? 'oh-Turn' : ''}`}
      aria-label={turn ? turn.prompt : name}
    >
      <button
        className="oh-Group-header"
        aria-expanded={isOpen}
        onClick={() => onOpenChange(key, !isOpen)}
      >
        <span className={`oh-Badge oh-mod-${source}`}>{name}</span>
        <span className="oh-Group-count">
          {cards.length > 0 &&
            trans._n('%1 action', '%1 actions', cards.length)}
        </span>
        <Age iso={iso} />
        <Chevron />
      </button>
      {turn && <TurnStart turn={turn} />}
    </section>
  );
}

function TurnSum({
  sum,
  actions
}: {
  sum: ISumRow;
  actions: IConversationActions;
}) {
  const { turn, cards } = sum;
  const { checkpoint } = turn;
  const cells = cards.filter(card => kind(card) === 'cell').length;
  const facts = turnFacts(turn, cells);
  const runs = Object.entries(turn.runs_when);
  const hasChanges = turn.changed_files.length > 0 || cells > 0;
  return (
    <footer className="oh-TurnSum">
      <span className="oh-TurnSum-facts">{facts}</span>
      {hasChanges && !turn.undone && (
        <button
          title={trans.__('Go through the changes one by one')}
          onClick={actions.onReview}
        >
          {trans.__('Review')}
        </button>
      )}
      {checkpoint !== null && !turn.undone && (
        <button
          title={trans.__('Undo this turn and those after it')}
          onClick={() => actions.onUndo(checkpoint)}
        >
          {trans.__('Undo turn…')}
        </button>
      )}
      {runs.length > 0 && (
        <ul
          className="oh-TurnSum-runs"
          aria-label={trans.__('Changed files that run')}
        >
          {runs.map(([path, when]) => (
            <li key={path} title={runsWhenTitle(path, when)}>
              <code>{visible(PathExt.basename(path))}</code>
              {` · ${runsWhenLabel(when)}`}
            </li>
          ))}
        </ul>
      )}
    </footer>
  );
}

function Chevron() {
  return (
    <svg className="oh-Icon oh-Chevron" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M5 6.5 8 9.5l3-3" />
    </svg>
  );
}
