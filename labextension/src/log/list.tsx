import {
  defaultRangeExtractor,
  useVirtualizer,
  type Range,
  type Virtualizer
} from '@tanstack/react-virtual';
import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import { trans } from '../translation.js';
import { Card, type ICardActions } from './card.js';
import { findStoppable } from './stoppable.js';

/** Height of a closed card in pixels. */
const CARD_HEIGHT_PX = 58;

/** Cards drawn beyond the visible ones. */
const OVERSCAN_CARDS = 6;

interface IListProps {
  entries: readonly LogEntry[];
  follow: boolean;
  onFollow: (follow: boolean) => void;
  actions: ICardActions;
  children: React.ReactNode;
}

/** Feed of cards, oldest first, with arrow key navigation; only visible cards are drawn. */
export function CardList(props: IListProps) {
  const { entries, follow, onFollow, actions, children } = props;
  const list = React.useRef<HTMLDivElement>(null);
  const [focused, setFocused] = React.useState('');
  const [opened, setOpened] = React.useState<ReadonlyMap<string, boolean>>(
    new Map()
  );
  const onOpenChange = React.useCallback((key: string, open: boolean) => {
    setOpened(known => new Map(known).set(key, open));
  }, []);
  const stoppable = React.useMemo(() => findStoppable(entries), [entries]);
  const reachable = entries.some(({ key }) => key === focused)
    ? focused
    : entries.filter(isCard).at(-1)?.key;
  const virtualizer = useVirtualizer({
    count: entries.length,
    getScrollElement: () => list.current,
    estimateSize: () => CARD_HEIGHT_PX,
    getItemKey: index => entries[index]!.key,
    overscan: OVERSCAN_CARDS,
    // Always draw pending cards and the focused one.
    rangeExtractor: range => extracted(range, entries, reachable)
  });
  const height = virtualizer.getTotalSize();
  const onScroll = useFollow(list, entries, height, follow, onFollow);
  return (
    <div
      ref={list}
      className="oh-List"
      role="feed"
      aria-label={trans.__('Actions and observations')}
      onKeyDown={event => moveFocus(event, entries, virtualizer)}
      onScroll={onScroll}
    >
      <div className="oh-List-all" role="presentation" style={{ height }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const entry = entries[index]!;
          return (
            <div
              key={key}
              className="oh-List-item"
              role="presentation"
              data-index={index}
              ref={virtualizer.measureElement}
              style={{ transform: `translateY(${start}px)` }}
            >
              {isCard(entry) ? (
                <Card
                  card={entry}
                  position={index + 1}
                  count={entries.length}
                  chosen={opened.get(entry.key) ?? null}
                  onOpenChange={onOpenChange}
                  reachable={entry.key === reachable}
                  stoppable={stoppable.has(entry.key)}
                  actions={actions}
                  onFocus={setFocused}
                />
              ) : (
                <p className="oh-FreshStart" role="separator">
                  {entry.sameKernel
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

/** Return the visible entries and those that must be drawn anyway. */
function extracted(
  range: Range,
  entries: readonly LogEntry[],
  reachable: string | undefined
): number[] {
  const wanted = new Set(defaultRangeExtractor(range));
  entries.forEach((entry, index) => {
    if (
      entry.key === reachable ||
      (isCard(entry) && entry.confirmation !== null)
    ) {
      wanted.add(index);
    }
  });
  return [...wanted].sort((a, b) => a - b);
}

/** Stay at the end while following; stop when the person scrolls up. */
function useFollow(
  list: React.RefObject<HTMLDivElement>,
  entries: readonly LogEntry[],
  height: number,
  follow: boolean,
  onFollow: (follow: boolean) => void
): () => void {
  const last = React.useRef({ top: 0, height: 0 });
  React.useLayoutEffect(() => {
    if (follow && list.current) {
      list.current.scrollTop = list.current.scrollHeight;
    }
  }, [entries, height, follow]);
  return () => {
    const { scrollTop, scrollHeight, clientHeight } = list.current!;
    const { top, height } = last.current;
    if (scrollTop + clientHeight >= scrollHeight - 1) {
      onFollow(true);
    } else if (top - scrollTop > Math.max(0, height - scrollHeight)) {
      // A list that shrinks also moves up, but by no more than the difference.
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
  entries: readonly LogEntry[],
  virtualizer: Virtualizer<HTMLDivElement, Element>
): void {
  const step = STEPS[event.key];
  const header = event.target as HTMLElement;
  const item = header.closest<HTMLElement>('.oh-List-item');
  // In an opened card, the keys scroll its text.
  if (!step || !item || !header.classList.contains('oh-Card-header')) {
    return;
  }
  const cards = [...entries.keys()].filter(index => isCard(entries[index]!));
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
