import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { Card } from './card.js';
import { findStoppable } from './stoppable.js';

/** Entries that are in the page at first, and how many more each time that the person asks. */
const PAGE_ENTRIES = 200;

interface IListProps {
  entries: readonly LogEntry[];
  /** Keep the newest card in sight. */
  follow: boolean;
  onFollow: (follow: boolean) => void;
  onOpen: (card: ICard) => Promise<void>;
  onAdd: ((card: ICard) => void) | null;
  onStop: (card: ICard) => void;
  onCopy: (card: ICard) => void;
  onDecide: (card: ICard, approve: boolean) => void;
  /** What stands below the last card. */
  children: React.ReactNode;
  trans: TranslationBundle;
}

/** The cards, oldest first, as a feed that arrow keys walk through. */
export function CardList(props: IListProps) {
  const {
    entries,
    follow,
    onFollow,
    onOpen,
    onAdd,
    onStop,
    onCopy,
    onDecide,
    children,
    trans
  } = props;
  const list = React.useRef<HTMLDivElement>(null);
  const [focused, setFocused] = React.useState('');
  const onScroll = useFollow(list, entries, follow, onFollow);
  const [limit, setLimit] = React.useState(PAGE_ENTRIES);
  const start = firstShown(entries, limit);
  const stoppable = findStoppable(entries);
  const cards = entries.filter(isCard);
  const reachable = cards.some(({ key }) => key === focused)
    ? focused
    : cards.at(-1)?.key;
  return (
    <div
      ref={list}
      className="oh-List"
      role="feed"
      aria-label={trans.__('Actions and observations')}
      onKeyDown={moveFocus}
      onScroll={onScroll}
    >
      {start > 0 && (
        <button
          className="oh-Earlier"
          onClick={() => setLimit(entries.length - start + PAGE_ENTRIES)}
        >
          {trans.__('Show earlier actions (%1)', start)}
        </button>
      )}
      {entries.slice(start).map(entry =>
        isCard(entry) ? (
          <Card
            key={entry.key}
            card={entry}
            reachable={entry.key === reachable}
            onOpen={onOpen}
            onAdd={onAdd}
            onStop={stoppable.has(entry.key) ? onStop : null}
            onCopy={onCopy}
            onDecide={onDecide}
            onFocus={setFocused}
            trans={trans}
          />
        ) : (
          <p key={entry.key} className="oh-FreshStart" role="separator">
            {entry.sameKernel
              ? trans.__('Kernel restarted, a fresh runtime')
              : trans.__('Another kernel, a fresh runtime')}
          </p>
        )
      )}
      {children}
    </div>
  );
}

/** Where the list begins, so that whatever waits for a person is in it. */
function firstShown(entries: readonly LogEntry[], limit: number): number {
  const start = Math.max(0, entries.length - limit);
  const waiting = entries
    .slice(0, start)
    .findIndex(entry => isCard(entry) && entry.confirmation !== null);
  return waiting < 0 ? start : waiting;
}

/** Stay at the end while following; stop when the person scrolls up. */
function useFollow(
  list: React.RefObject<HTMLDivElement>,
  entries: readonly LogEntry[],
  follow: boolean,
  onFollow: (follow: boolean) => void
): () => void {
  const last = React.useRef({ top: 0, height: 0 });
  React.useLayoutEffect(() => {
    if (follow && list.current) {
      list.current.scrollTop = list.current.scrollHeight;
    }
  }, [entries, follow]);
  return () => {
    const { scrollTop, scrollHeight, clientHeight } = list.current!;
    const { top, height } = last.current;
    if (scrollTop + clientHeight >= scrollHeight - 1) {
      onFollow(true);
    } else if (top - scrollTop > Math.max(0, height - scrollHeight)) {
      // A list that gets shorter also moves up, but by no more than that.
      onFollow(false);
    }
    last.current = { top: scrollTop, height: scrollHeight };
  };
}

const STEPS: Readonly<Record<string, (at: number, end: number) => number>> = {
  ArrowUp: at => at - 1,
  ArrowDown: at => at + 1,
  PageUp: at => at - 1,
  PageDown: at => at + 1,
  Home: () => 0,
  End: (_, end) => end
};

function moveFocus(event: React.KeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  const headers = Array.from(
    event.currentTarget.querySelectorAll<HTMLElement>('.oh-Card-header')
  );
  const at = headers.indexOf(event.target as HTMLElement);
  // Inside an opened card the keys scroll its text.
  if (!step || at < 0) {
    return;
  }
  headers[step(at, headers.length - 1)]?.focus();
  event.preventDefault();
  event.stopPropagation();
}
