import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import type { IActivity } from '../tokens.js';
import { trans } from '../translation.js';
import type { ICardActions } from './card.js';
import { SourceSelect, type ISourceSelectProps } from './source.js';
import { filtered, type IFilter } from './filter.js';
import { kindLabel, statusLabel } from './labels.js';
import { CardList } from './list.js';
import { Notice } from './notice.js';
import { status } from './status.js';
import { kind, summary } from './summary.js';
import { Toolbar } from './toolbar.js';

interface ILogViewProps extends ISourceSelectProps {
  events: IActivity | null;
  entries: readonly LogEntry[];
  follow: boolean;
  onFollow: (follow: boolean) => void;
  /** Null without a notebook. */
  onRewind: (() => void) | null;
  actions: ICardActions;
}

const NO_FILTER: IFilter = { words: '', kind: null };

/** Content of the panel: toolbar, cards and notices. */
export function LogView(props: ILogViewProps) {
  const { events, entries } = props;
  const [filter, setFilter] = React.useState(NO_FILTER);
  const shown = React.useMemo(
    () => filtered(entries, filter),
    [entries, filter]
  );
  return (
    <>
      <SourceSelect {...props} />
      {entries.length > 0 && (
        <Toolbar
          {...props}
          name={events?.name ?? ''}
          filter={filter}
          onFilter={setFilter}
        />
      )}
      <CardList {...props} entries={shown}>
        {entries.length > 0 && shown.length === 0 && (
          <p className="oh-Note">{trans.__('No action matches the filter.')}</p>
        )}
        <Notice events={events} isEmpty={entries.length === 0} />
      </CardList>
      <Announcement entry={entries.at(-1)} />
    </>
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
