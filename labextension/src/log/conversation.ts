import type { ITurn } from '../agent/turn.js';
import type { IStep } from '../control/operations.js';
import { agentName, guestCommand } from '../events/actor.js';
import {
  isCard,
  isPending,
  type ICard,
  type LogEntry
} from '../events/card.js';
import type { EventSource } from '../events/wire.js';
import { status } from './status.js';
import { stepsShownAsCards } from './steps.js';
import { kind } from './summary.js';

/** Start of a group: a prompt, or the client that acted without one. */
export interface IGroupRow {
  readonly row: 'group';
  readonly key: string;
  /** Null for actions without a prompt. */
  readonly turn: ITurn | null;
  readonly source: EventSource;
  readonly agent: string;
  readonly cards: readonly ICard[];
  readonly isOpen: boolean;
}

/** Text of an agent. */
export interface ITextRow {
  readonly row: 'text';
  readonly key: string;
  readonly text: string;
  /** Whether more of it may arrive. */
  readonly isGrowing: boolean;
}

/** Step of an agent that is no Action of the runtime, such as a use of its own tools. */
export interface IStepRow {
  readonly row: 'step';
  readonly key: string;
  readonly step: IStep;
}

/** Consecutive cards of one kind in one line. */
export interface IFoldRow {
  readonly row: 'fold';
  readonly key: string;
  readonly cards: readonly ICard[];
  readonly isOpen: boolean;
}

/** End of an agent's turn. */
export interface ISumRow {
  readonly row: 'sum';
  readonly key: string;
  readonly turn: ITurn;
  readonly cards: readonly ICard[];
}

export type ConversationRow =
  IGroupRow | ITextRow | IStepRow | IFoldRow | ISumRow;

export type LogRow = LogEntry | ConversationRow;

/** Whether the person opened or closed a row, by its key. */
export type Opened = ReadonlyMap<string, boolean>;

/** Return whether a row belongs to a conversation, unlike cards and fresh starts. */
export function isConversationRow(row: LogRow): row is ConversationRow {
  return 'row' in row;
}

interface IGroup {
  readonly turn: ITurn | null;
  /** Who acts in it; two neighbours have different owners. */
  readonly owner: string;
  readonly cards: ICard[];
}

/** Group entries by prompt, or by who acted without one. */
export function conversationRows(
  entries: readonly LogEntry[],
  turns: readonly ITurn[],
  opened: Opened
): readonly LogRow[] {
  const groups = grouped(entries, turns);
  return groups.flatMap<LogRow>((group, index) =>
    'cards' in group
      ? groupRows(group, opened, index === groups.length - 1)
      : [group]
  );
}

function grouped(
  entries: readonly LogEntry[],
  turns: readonly ITurn[]
): readonly (IGroup | Exclude<LogEntry, ICard>)[] {
  const groups: (IGroup | Exclude<LogEntry, ICard>)[] = [];
  const ofTurn = new Map<ITurn, IGroup>();
  // Turns are known of the current runtime only.
  const current = entries.filter(isCard).at(-1)?.generation;
  for (const entry of entries) {
    if (!isCard(entry)) {
      groups.push(entry);
      continue;
    }
    const turn = entry.generation === current ? turnOf(entry, turns) : null;
    const owner = turn?.key ?? ownerOf(entry);
    const last = groups.at(-1);
    const group =
      (turn && ofTurn.get(turn)) ??
      (last && 'cards' in last && last.owner === owner ? last : null);
    if (group) {
      group.cards.push(entry);
      continue;
    }
    const started = { turn, owner, cards: [entry] };
    groups.push(started);
    if (turn) {
      ofTurn.set(turn, started);
    }
  }
  for (const turn of turns.filter(each => !ofTurn.has(each))) {
    const next = groups.findIndex(
      each =>
        'cards' in each &&
        each.cards[0]!.generation === current &&
        each.cards[0]!.id > turn.first_event
    );
    const empty = { turn, owner: turn.key, cards: [] };
    groups.splice(next < 0 ? groups.length : next, 0, empty);
  }
  return groups;
}

/** Return the turn in which a card's agent acted; null if there was no prompt. */
function turnOf(card: ICard, turns: readonly ITurn[]): ITurn | null {
  const prompt = turns.find(({ first_event }) => first_event === card.id);
  const command = card.action ? guestCommand(card.action) : '';
  const own = turns.filter(
    ({ agent, first_event }) => agent === command && first_event < card.id
  );
  return prompt ?? own.at(-1) ?? null;
}

function ownerOf({ action, observation }: ICard): string {
  const source = (action ?? observation)?.source ?? '';
  return `${source}/${action ? agentName(action) : ''}`;
}

function groupRows(
  group: IGroup,
  opened: Opened,
  isLast: boolean
): readonly LogRow[] {
  const { turn } = group;
  const cards = turn ? group.cards.filter(isNotText(turn)) : group.cards;
  const first = group.cards[0];
  const key = `group/${turn?.key ?? first!.key}`;
  const start: IGroupRow = {
    row: 'group',
    key,
    turn,
    source: turn
      ? 'agent'
      : ((first!.action ?? first!.observation)?.source ?? 'environment'),
    agent: turn?.agent ?? (first!.action ? agentName(first!.action) : ''),
    cards,
    isOpen: opened.get(key) ?? true
  };
  if (!start.isOpen) {
    return [
      start,
      ...cards.filter(({ confirmation }) => confirmation !== null)
    ];
  }
  const isAtWork = turn ? turn.stop_reason === '' : isLast;
  const rows = turn ? turnRows(turn, cards) : cards;
  const shown = isAtWork ? rows : folded(rows, opened);
  return turn && !isAtWork
    ? [start, ...shown, { row: 'sum', key: `sum/${turn.key}`, turn, cards }]
    : [start, ...shown];
}

/** The prompt and the agent's text are events as well. */
function isNotText(turn: ITurn): (card: ICard) => boolean {
  return card =>
    card.confirmation !== null ||
    (card.id !== turn.first_event && kind(card) !== 'message');
}

/** Return an agent's texts, steps and Actions in their order. */
function turnRows(turn: ITurn, cards: readonly ICard[]): readonly LogRow[] {
  const rows: LogRow[] = [];
  const hidden = stepsShownAsCards(turn, cards);
  let shown = 0;
  turn.parts.forEach((part, index) => {
    const began = turn.part_events[index] ?? -1;
    while (shown < cards.length && cards[shown]!.id <= began) {
      rows.push(cards[shown++]!);
    }
    const key = `part/${turn.key}/${index}`;
    if (typeof part === 'string') {
      const isLast = index === turn.parts.length - 1;
      const isGrowing = isLast && turn.stop_reason === '';
      rows.push({ row: 'text', key, text: part, isGrowing });
    } else if (!hidden.has(index)) {
      rows.push({ row: 'step', key, step: part });
    }
  });
  return [...rows, ...cards.slice(shown)];
}

/** Fold consecutive cards of one kind that ended well. */
function folded(rows: readonly LogRow[], opened: Opened): readonly LogRow[] {
  const runs: LogRow[][] = [];
  for (const row of rows) {
    const run = runs.at(-1);
    if (run && canFold(run[0]!, row)) {
      run.push(row);
    } else {
      runs.push([row]);
    }
  }
  return runs.flatMap(run => {
    if (run.length === 1) {
      return run;
    }
    const cards = run as ICard[];
    const key = `fold/${cards[0]!.key}`;
    const isOpen = opened.get(key) ?? false;
    const fold: IFoldRow = { row: 'fold', key, cards, isOpen };
    return isOpen ? [fold, ...cards] : [fold];
  });
}

function canFold(first: LogRow, next: LogRow): boolean {
  return isQuiet(first) && isQuiet(next) && kind(first) === kind(next);
}

/** Return whether a row is a card that asks for no attention. */
function isQuiet(row: LogRow): row is ICard {
  return (
    !isConversationRow(row) &&
    isCard(row) &&
    !isPending(row) &&
    ['ok', 'none'].includes(status(row).outcome)
  );
}
