import { agentName, guestCommand } from '../events/actor.js';
import { isCard, type ICard, type LogEntry } from '../events/card.js';
import { text } from '../events/wire.js';
import { sourceLabel } from '../log/labels.js';
import { kind, summary } from '../log/summary.js';

/** Latest pages that are listed. */
const MAX_PAGES = 30;

/** Pages that were seen in one turn, or by one client without a prompt. */
export interface IPageGroup {
  readonly key: string;
  /** The prompt, or who acted without one. */
  readonly label: string;
  readonly cards: readonly ICard[];
}

interface IPage {
  readonly card: ICard;
  /** Prompt that it was seen for; null without. */
  readonly prompt: ICard | null;
}

/** Group the latest pages by turn, the latest turn first. */
export function pageGroups(
  entries: readonly LogEntry[]
): readonly IPageGroup[] {
  const groups: { key: string; label: string; cards: ICard[] }[] = [];
  for (const { card, prompt } of pagesSeen(entries).slice(-MAX_PAGES)) {
    const label = prompt ? summary(prompt).title : actorLabel(card);
    const last = groups.at(-1);
    const group = prompt
      ? groups.find(({ key }) => key === prompt.key)
      : last?.label === label
        ? last
        : undefined;
    if (group) {
      group.cards.push(card);
    } else {
      groups.push({ key: (prompt ?? card).key, label, cards: [card] });
    }
  }
  return groups.reverse();
}

function pagesSeen(entries: readonly LogEntry[]): readonly IPage[] {
  const pages: IPage[] = [];
  let prompt: ICard | null = null;
  for (const card of entries.filter(isCard)) {
    if (kind(card) === 'message') {
      // The agent's own message ends its turn.
      prompt = card.action?.source === 'user' ? card : null;
    } else if (
      kind(card) === 'browse' &&
      text(card.observation?.extras, 'url') !== ''
    ) {
      const isGuests = card.action !== null && guestCommand(card.action) !== '';
      pages.push({ card, prompt: isGuests ? prompt : null });
    }
  }
  return pages;
}

/** Name who saw a page. */
export function actorLabel({ action }: ICard): string {
  return sourceLabel(
    action?.source ?? 'environment',
    action ? agentName(action) : ''
  );
}
