import {
  defaultRangeExtractor,
  useVirtualizer,
  type Range,
  type Virtualizer
} from '@tanstack/react-virtual';
import * as React from 'react';

import type { ITurn } from '../agent/turn.js';
import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { trans } from '../translation.js';
import { Card, type ICardActions } from './card.js';
import {
  conversationRows,
  isConversationRow,
  type LogRow
} from './conversation.js';
import { Row, type IConversationActions } from './rows.js';
import { findStoppable } from './stoppable.js';

/** Height of a closed card in pixels. */
const CARD_HEIGHT_PX = 58;

/** Cards drawn beyond the visible ones. */
const OVERSCAN_CARDS = 6;

interface IListProps {
  entries: readonly LogEntry[];
  /** Turns to group the entries by; null for a flat list. */
  turns: readonly ITurn[] | null;
  follow: boolean;
  onFollow: (follow: boolean) => void;
  actions: ICardActions;
  conversation: IConversationActions;
  children: React.ReactNode;
}

/** Feed of cards, oldest first, with arrow key navigation; only visible rows are drawn. */
export function CardList(props: IListProps) {
  const { entries, turns, follow, onFollow, actions, children } = props;
  const list = React.useRef<HTMLDivElement>(null);
  const [focused, setFocused] = React.useState('');
  const [opened, setOpened] = React.useState<ReadonlyMap<string, boolean>>(
    new Map()
  );
  const onOpenChange = React.useCallback((key: string, open: boolean) => {
    setOpened(known => new Map(known).set(key, open));
  }, []);
  const stoppable = React.useMemo(() => findStoppable(entries), [entries]);
  const rows = React.useMemo(
    () => (turns ? conversationRows(entries, turns, opened) : entries),
    [entries, turns, opened]
  );
  const reachable = rows.some(({ key }) => key === focused)
    ? focused
    : rows.filter(isCardRow).at(-1)?.key;
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => CARD_HEIGHT_PX,
    getItemKey: index => rows[index]!.key,
    overscan: OVERSCAN_CARDS,
    // Always draw pending cards and the focused one.
    rangeExtractor: range => extracted(range, rows, reachable)
  });
  const height = virtualizer.getTotalSize();
  const onScroll = useFollow(list, rows, height, follow, onFollow);
  return (
    <div
      ref={list}
      className="oh-List"
      onKeyDown={event => moveFocus(event, rows, virtualizer)}
      onScroll={onScroll}
    >
      <div
        className="oh-List-all"
        // A feed without articles would be invalid.
        role={rows.length > 0 ? 'feed' : 'group'}
        aria-label={trans.__('Actions and observations')}
        style={{ height }}
      >
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index]!;
          return (
            <div
              key={key}
              className="oh-List-item"
              role={isCardRow(row) ? 'presentation' : 'article'}
              data-index={index}
              ref={virtualizer.measureElement}
              style={{ transform: `translateY(${start}px)` }}
            >
              {isConversationRow(row) ? (
                <Row
                  row={row}
                  onOpenChange={onOpenChange}
                  actions={props.conversation}
                />
              ) : isCard(row) ? (
                <Card
                  card={row}
                  position={index + 1}
                  count={rows.length}
                  chosen={opened.get(row.key) ?? null}
                  onOpenChange={onOpenChange}
                  reachable={row.key === reachable}
                  stoppable={stoppable.has(row.key)}
                  actions={actions}
                  onFocus={setFocused}
                />
              ) : (
                <p className="oh-FreshStart" role="separator">
                  {row.sameKernel
                    ? trans.__('Kernel restarted, a fresh runtime')
                    : trans.__('Another kernel, a fresh runtime')}
                </p>
              )}
            </div>
          );
        })}
      </div>
      {children}
    </div>
  );
}

function isCardRow(row: LogRow): row is ICard {
  return !isConversationRow(row) && isCard(row);
}

/** Return the visible rows and those that must be drawn anyway. */
function extracted(
  range: Range,
  rows: readonly LogRow[],
  reachable: string | undefined
): number[] {
  const wanted = new Set(defaultRangeExtractor(range));
  rows.forEach((row, index) => {
    if (
      row.key === reachable ||
      (isCardRow(row) && row.confirmation !== null)
    ) {
      wanted.add(index);
    }
  });
  return [...wanted].sort((a, b) => a - b);
}

/** Stay at the end while following; stop when the person scrolls up. */
function useFollow(
  list: React.RefObject<HTMLDivElement>,
  rows: readonly LogRow[],
  height: number,
  follow: boolean,
  onFollow: (follow: boolean) => void
): () => void {
  const last = React.useRef({ top: 0, height: 0 });
  // The panel draws later what the person chose by scrolling.
  const isFollowing = React.useRef(follow);
  React.useLayoutEffect(() => {
    isFollowing.current = follow;
  }, [follow]);
  React.useLayoutEffect(() => {
    if (isFollowing.current && list.current) {
      list.current.scrollTop = list.current.scrollHeight;
    }
  }, [rows, height, follow]);
  return () => {
    const { scrollTop, scrollHeight, clientHeight } = list.current!;
    const { top, height } = last.current;
    if (scrollTop + clientHeight >= scrollHeight - 1) {
      isFollowing.current = true;
      onFollow(true);
    } else if (top - scrollTop > Math.max(0, height - scrollHeight)) {
      // A list that shrinks also moves up, but by no more than the difference.
      isFollowing.current = false;
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

function moveFocus(
  event: React.KeyboardEvent<HTMLElement>,
  rows: readonly LogRow[],
  virtualizer: Virtualizer<HTMLDivElement, Element>
): void {
  const step = STEPS[event.key];
  const header = event.target as HTMLElement;
  const item = header.closest<HTMLElement>('.oh-List-item');
  // In an opened card, the keys scroll its text.
  if (!step || !item || !header.classList.contains('oh-Card-header')) {
    return;
  }
  const cards = [...rows.keys()].filter(index => isCardRow(rows[index]!));
  const at = cards.indexOf(Number(item.dataset.index));
  const index = cards[step(at, cards.length - 1)];
  if (index !== undefined) {
    focusCard(event.currentTarget, index, virtualizer);
  }
  event.preventDefault();
  event.stopPropagation();
}

/** Focus a card, drawing it first if needed. */
function focusCard(
  list: HTMLElement,
  index: number,
  virtualizer: Virtualizer<HTMLDivElement, Element>
): void {
  const header = () =>
    list.querySelector<HTMLElement>(`[data-index="${index}"] .oh-Card-header`);
  if (header()) {
    header()!.focus();
    return;
  }
  virtualizer.scrollToIndex(index);
  const drawn = new MutationObserver(() => {
    const drawnHeader = header();
    if (drawnHeader) {
      drawn.disconnect();
      drawnHeader.focus();
    }
  });
  drawn.observe(list, { childList: true, subtree: true });
}
