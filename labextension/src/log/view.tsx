import type { JupyterFrontEnd } from '@jupyterlab/application';
import * as React from 'react';

import type { IContextItem } from '../agent/context.js';
import { AgentFoot } from '../agent/foot.js';
import type { AgentModel } from '../agent/model.js';
import { Examples } from '../agent/start.js';
import type { ITurn } from '../agent/turn.js';
import { ChangesList } from '../changes/list.js';
import type { ChangesModel } from '../changes/model.js';
import { isCard, type LogEntry } from '../events/card.js';
import type { IActivity } from '../tokens.js';
import { trans } from '../translation.js';
import type { ICardActions } from './card.js';
import { SourceSelect, type ISourceSelectProps } from './source.js';
import { withoutKeys } from './cleared.js';
import { filtered, type IFilter } from './filter.js';
import { FilterBar } from './filterbar.js';
import { Header } from './header.js';
import { kindLabel, statusLabel } from './labels.js';
import { CardList } from './list.js';
import { Notice } from './notice.js';
import type { IConversationActions } from './rows.js';
import type { LimitsModel } from './limits.js';
import { status } from './status.js';
import { kind, summary } from './summary.js';
import { WaitingButton } from './waiting.js';

interface ILogViewProps extends ISourceSelectProps {
  events: IActivity | null;
  entries: readonly LogEntry[];
  follow: boolean;
  onFollow: (follow: boolean) => void;
  isFlat: boolean;
  isFiltering: boolean;
  onFilterEnd: () => void;
  /** Shows what was cleared. */
  onShowCleared: () => void;
  /** Keys of what the person has cleared. */
  cleared: ReadonlySet<string>;
  onMenu: (button: HTMLElement) => void;
  actions: ICardActions;
  conversation: IConversationActions;
  /** Agents of the notebook's kernel; null for a fleet. */
  agents: AgentModel | null;
  /** Changes in the notebook's kernel; null for a fleet. */
  changes: ChangesModel | null;
  /** Limits of agents in the notebook’s kernel; null for a fleet. */
  limits: LimitsModel | null;
  /** Whether the panel is visible. */
  isShown: boolean;
  commands: JupyterFrontEnd['commands'];
  takeFocus: () => boolean;
  /** Puts the cursor into the prompt box. */
  onAsk: () => void;
  /** Finds what can be added to a prompt. */
  findContext: (query: string) => Promise<readonly IContextItem[]>;
}

const NO_TURNS: readonly ITurn[] = [];

const NO_FILTER: IFilter = { words: '', kind: null };

/** Content of the panel: toolbar, conversation, notices and prompt box. */
export function LogView(props: ILogViewProps) {
  const { events, entries, agents, isFlat } = props;
  const { cleared, isFiltering } = props;
  const [filter, setFilter] = React.useState(NO_FILTER);
  const turns = agents?.conversation?.turns ?? NO_TURNS;
  const left = React.useMemo(
    () => withoutKeys(entries, cleared),
    [entries, cleared]
  );
  const shown = React.useMemo(
    () => (isFiltering ? filtered(left, filter) : left),
    [left, filter, isFiltering]
  );
  const shownTurns = React.useMemo(
    () => withoutKeys(turns, cleared),
    [turns, cleared]
  );
  const hidden =
    entries.length - left.length + turns.length - shownTurns.length;
  const isEmpty = entries.length === 0 && turns.length === 0;
  return (
    <>
      <SourceSelect {...props} />
      {events && <Header {...props} events={events} turns={turns} />}
      {isFiltering && (
        <FilterBar
          entries={left}
          filter={filter}
          onFilter={setFilter}
          onClose={props.onFilterEnd}
        />
      )}
      {hidden > 0 && <Cleared onShow={props.onShowCleared} />}
      <CardList
        {...props}
        entries={shown}
        turns={isFlat || shown !== left ? null : shownTurns}
      >
        {left.length > 0 && shown.length === 0 && (
          <p className="oh-Note">{trans.__('No action matches the filter.')}</p>
        )}
        {isEmpty && agents?.defaultAgent && events?.state === 'ready' ? (
          <Examples model={agents} onChoose={props.onAsk} />
        ) : (
          <Notice events={events} isEmpty={isEmpty} />
        )}
      </CardList>
      {props.changes && events?.state === 'ready' && (
        <ChangesList
          model={props.changes}
          commands={props.commands}
          isShown={props.isShown}
        />
      )}
      <WaitingButton entries={entries} />
      {agents && events?.state === 'ready' && (
        <AgentFoot
          model={agents}
          takeFocus={props.takeFocus}
          find={props.findContext}
          isEmpty={isEmpty}
        />
      )}
      <Announcement entry={entries.at(-1)} />
    </>
  );
}

/** Notice that finished actions are hidden. */
function Cleared({ onShow }: { onShow: () => void }) {
  return (
    <div className="oh-Cleared">
      <span>{trans.__('Finished actions are hidden.')}</span>
      <button onClick={onShow}>{trans.__('Show them')}</button>
    </div>
  );
}

/** Announces the last event to screen readers. */
function Announcement({ entry }: { entry: LogEntry | undefined }) {
  const words =
    entry && isCard(entry)
      ? [
          kindLabel(kind(entry)),
          summary(entry).title,
          statusLabel(status(entry))
        ]
      : [];
  return (
    <p className="oh-Announcement" role="status" aria-live="polite">
      {words.filter(Boolean).join(', ')}
    </p>
  );
}
