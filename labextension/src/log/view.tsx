import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import type { IActivity } from '../tokens.js';
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
  /** Null where there is no notebook whose turns can be taken back. */
  onRewind: (() => void) | null;
  actions: ICardActions;
}

const NO_FILTER: IFilter = { words: '', kind: null };

/** Everything in the panel: the toolbar, the cards, and what there is to say otherwise. */
export function LogView(props: ILogViewProps) {
  const { events, entries, follow, onFollow, trans } = props;
  const [filter, setFilter] = React.useState(NO_FILTER);
  const shown = React.useMemo(
    () => filtered(entries, filter),
    [entries, filter]
  );
  return (
    <>
      <SourceSelect
        fleets={props.fleets}
        chosen={props.chosen}
        onChoose={props.onChoose}
        trans={trans}
      />
      {entries.length > 0 && (
        <Toolbar
          name={events?.name ?? ''}
          entries={entries}
          filter={filter}
          onFilter={setFilter}
          follow={follow}
          onFollow={onFollow}
          onRewind={props.onRewind}
          trans={trans}
        />
      )}
      <CardList
        entries={shown}
        follow={follow}
        onFollow={onFollow}
        actions={props.actions}
        trans={trans}
      >
        {entries.length > 0 && shown.length === 0 && (
          <p className="oh-Note">{trans.__('Nothing matches the filter.')}</p>
        )}
        <Notice events={events} isEmpty={entries.length === 0} trans={trans} />
      </CardList>
      <Announcement entry={entries.at(-1)} trans={trans} />
    </>
  );
}

/** Tells those who listen what happened last. */
function Announcement({
  entry,
  trans
}: {
  entry: LogEntry | undefined;
  trans: TranslationBundle;
}) {
  const words =
    entry && isCard(entry)
      ? [
          kindLabel(kind(entry), trans),
          summary(entry).title,
          statusLabel(status(entry), trans)
        ]
      : [];
  return (
    <p className="oh-Announcement" role="status" aria-live="polite">
      {words.filter(Boolean).join(', ')}
    </p>
  );
}
