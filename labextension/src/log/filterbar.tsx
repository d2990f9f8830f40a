import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import { trans } from '../translation.js';
import type { IFilter } from './filter.js';
import { kindLabel } from './labels.js';
import { kind, KINDS, type Kind } from './summary.js';

interface IFilterBarProps {
  entries: readonly LogEntry[];
  filter: IFilter;
  onFilter: (filter: IFilter) => void;
  onClose: () => void;
}

/** Words and kind of the actions that are shown. */
export function FilterBar(props: IFilterBarProps) {
  const { filter, onFilter, onClose } = props;
  const words = React.useRef<HTMLInputElement>(null);
  React.useEffect(() => words.current?.focus(), []);
  return (
    <div
      className="oh-FilterBar"
      role="search"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <input
        ref={words}
        className="oh-Search jp-mod-styled"
        type="search"
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Show only actions that contain these words')}
        value={filter.words}
        onChange={({ target }) => onFilter({ ...filter, words: target.value })}
      />
      <KindSelect {...props} />
      <button
        className="oh-FilterBar-close"
        aria-label={trans.__('Show all actions')}
        title={trans.__('Show all actions (Esc)')}
        onClick={onClose}
      >
        ×
      </button>
    </div>
  );
}

function KindSelect({
  entries,
  filter,
  onFilter
}: Pick<IFilterBarProps, 'entries' | 'filter' | 'onFilter'>) {
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
