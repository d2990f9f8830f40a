import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import { trans } from '../translation.js';
import type { IFilter } from './filter.js';
import { kindLabel } from './labels.js';
import { kind, KINDS, type Kind } from './summary.js';

interface IToolbarProps {
  name: string;
  entries: readonly LogEntry[];
  filter: IFilter;
  onFilter: (filter: IFilter) => void;
  follow: boolean;
  onFollow: (follow: boolean) => void;
  onRewind: (() => void) | null;
}

/** Toolbar with the name, the filters, and the follow switch. */
export function Toolbar(props: IToolbarProps) {
  const { name, entries, filter, onFilter, follow, onFollow, onRewind } = props;
  const count = entries.filter(isCard).length;
  return (
    <header className="oh-Toolbar">
      <div className="oh-Toolbar-row">
        <h3 className="oh-Toolbar-name" title={name}>
          {name}
        </h3>
        <span className="oh-Toolbar-count">
          {trans._n('%1 action', '%1 actions', count)}
        </span>
        {onRewind && (
          <button
            className="oh-Rewind"
            title={trans.__('Undo turns of an agent')}
            onClick={onRewind}
          >
            {trans.__('Undo…')}
          </button>
        )}
        <button
          className="oh-Follow"
          aria-pressed={follow}
          title={trans.__('Keep the newest action visible')}
          onClick={() => onFollow(!follow)}
        >
          {trans.__('Follow')}
        </button>
      </div>
      <div className="oh-Toolbar-row">
        <input
          className="oh-Search jp-mod-styled"
          type="search"
          placeholder={trans.__('Filter')}
          aria-label={trans.__('Show only actions that contain these words')}
          value={filter.words}
          onChange={({ target }) =>
            onFilter({ ...filter, words: target.value })
          }
        />
        <KindSelect entries={entries} filter={filter} onFilter={onFilter} />
      </div>
      <WaitingButton entries={entries} />
    </header>
  );
}

/** Button that scrolls to the oldest pending card. */
function WaitingButton({ entries }: Pick<IToolbarProps, 'entries'>) {
  const count = entries.filter(
    entry => isCard(entry) && entry.confirmation !== null
  ).length;
  return count === 0 ? null : (
    <button
      className="oh-Waiting"
      onClick={({ currentTarget }) => showWaiting(currentTarget)}
    >
      {trans._n('%1 waits for you', '%1 wait for you', count)}
    </button>
  );
}

function showWaiting(button: HTMLElement): void {
  const card = button
    .closest('.oh-Panel')
    ?.querySelector<HTMLElement>('.oh-Card.oh-mod-waiting');
  card?.scrollIntoView({ block: 'nearest' });
  card?.querySelector<HTMLElement>('.oh-Confirm button')?.focus();
}

function KindSelect({
  entries,
  filter,
  onFilter
}: Pick<IToolbarProps, 'entries' | 'filter' | 'onFilter'>) {
  const present = new Set(entries.filter(isCard).map(kind));
  const offered = KINDS.filter(
    each => present.has(each) || each === filter.kind
  );
  return (
    <select
      className="oh-Kinds"
      aria-label={trans.__('Show only actions of this kind')}
      value={filter.kind ?? ''}
      onChange={({ target }) =>
        onFilter({ ...filter, kind: (target.value || null) as Kind | null })
      }
    >
      <option value="">{trans.__('All kinds')}</option>
      {offered.map(each => (
        <option key={each} value={each}>
          {kindLabel(each)}
        </option>
      ))}
    </select>
  );
}
