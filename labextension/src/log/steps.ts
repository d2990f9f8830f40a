import type { ITurn } from '../agent/turn.js';
import type { IStep } from '../control/operations.js';
import type { ICard } from '../events/card.js';
import { text } from '../events/wire.js';

/** Titles with which Claude, Codex and Gemini report a tool of the runtime; a group has its name. */
const OWN_TOOL =
  /^mcp__oh(?:[-_]jupyter)?__(\w+)|^(?:Tool: )?oh(?:[-_]jupyter)?[./](\w+)|^(\w+).*\(oh(?:[-_]jupyter)? MCP Server\)/;

/** Tool call of an agent that may have used the runtime. */
interface ICall {
  readonly index: number;
  readonly step: IStep;
  /** Name of the runtime's tool; "" for others. */
  readonly tool: string;
  /** Cards of Actions that began after it. */
  readonly after: readonly ICard[];
  /** Those that began before a later step. */
  readonly during: readonly ICard[];
}

/**
 * Return the indices of a turn's steps of which cards tell more.
 *
 * Parallel calls begin at the same event, so each card stands for only one step: first for the one
 * that names its command, tool or file, then for one with another tool of the runtime.
 */
export function stepsShownAsCards(
  turn: ITurn,
  cards: readonly ICard[]
): ReadonlySet<number> {
  const shown = new Set<number>();
  const taken = new Set<ICard>();
  const calls = callsOf(turn, cards);
  const claim = ({ index }: ICall, card: ICard | undefined) => {
    if (card && !shown.has(index)) {
      taken.add(card);
      shown.add(index);
    }
  };
  for (const call of calls) {
    const free = call.after.filter(card => !taken.has(card));
    claim(
      call,
      free.find(card => isNamed(call, card))
    );
  }
  for (const call of calls.filter(({ tool }) => tool !== '')) {
    claim(
      call,
      call.during.find(card => !taken.has(card))
    );
  }
  const paths = new Set(cards.map(({ action }) => text(action?.args, 'path')));
  for (const { index, step } of calls) {
    if (step.files.length > 0 && step.files.every(path => paths.has(path))) {
      shown.add(index);
    }
  }
  return shown;
}

function callsOf(turn: ITurn, cards: readonly ICard[]): readonly ICall[] {
  const { parts, part_events } = turn;
  return parts.flatMap((step, index) => {
    // A failed step says why, which its card may not.
    if (typeof step === 'string' || step.status === 'failed') {
      return [];
    }
    const began = part_events[index] ?? -1;
    const end =
      part_events.slice(index + 1).find(event => event > began) ?? Infinity;
    const match = OWN_TOOL.exec(step.title);
    return {
      index,
      step,
      tool: match?.slice(1).find(Boolean) ?? '',
      after: cards.filter(({ id }) => id > began),
      during: cards.filter(({ id }) => id > began && id <= end)
    };
  });
}

function isNamed({ step, tool }: ICall, { action }: ICard): boolean {
  const command = step.title.replace(/^`|`$/g, '');
  return (
    action !== null &&
    (text(action.args, 'command') === command || action.action === tool)
  );
}
