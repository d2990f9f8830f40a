import { isRecord, text } from '../events/wire.js';

/** Tool call of an agent. */
export interface IStep {
  readonly title: string;
  /** One of pending, in_progress, completed, failed. */
  readonly status: string;
  readonly arguments: string;
  readonly output: string;
}

/** Prompt with the agent's text and tool calls. */
export interface ITurn {
  /** Agent and start time. */
  readonly key: string;
  readonly agent: string;
  readonly prompt: string;
  /** Start in seconds since the epoch. */
  readonly began: number;
  /** Text and steps in order. */
  readonly parts: readonly (string | IStep)[];
  readonly plan: readonly {
    readonly content: string;
    readonly status: string;
  }[];
  readonly thoughts: string;
  /** Remarks, such as missing tools. */
  readonly notices: readonly string[];
  /** Reason of the end; "" while it runs. */
  readonly stopReason: string;
  /** Null if the agent does not report it. */
  readonly cost: number | null;
  readonly currency: string;
  readonly changedFiles: readonly string[];
  /** Whether a rewind has undone its changes. */
  readonly undone: boolean;
}

export interface IAgent {
  readonly name: string;
  /** One of busy, ready, installed, missing. */
  readonly state: string;
  readonly installation: string;
}

/** Agents of a kernel, and their turns. */
export interface IConversation {
  readonly agents: readonly IAgent[];
  /** Agent used last; "" if none. */
  readonly current: string;
  readonly turns: readonly ITurn[];
}

/** Parse the kernel's reply, or throw. */
export function readConversation(reply: unknown): IConversation {
  if (
    !isRecord(reply) ||
    !Array.isArray(reply.agents) ||
    !Array.isArray(reply.turns)
  ) {
    throw new Error('The kernel sent an unexpected conversation.');
  }
  const agents = reply.agents.filter(isRecord).map(each => ({
    name: text(each, 'name'),
    state: text(each, 'state'),
    installation: text(each, 'installation')
  }));
  const turns = reply.turns.map(readTurn).filter(turn => turn !== null);
  return { agents, current: text(reply, 'current'), turns };
}

/** Parse one turn; null if invalid. */
export function readTurn(value: unknown): ITurn | null {
  if (!isRecord(value) || typeof value.began !== 'number') {
    return null;
  }
  const agent = text(value, 'agent');
  return {
    key: `${agent}/${value.began}`,
    agent,
    prompt: text(value, 'prompt'),
    began: value.began,
    parts: list(value.parts).map(part =>
      typeof part === 'string' ? part : readStep(part)
    ),
    plan: list(value.plan)
      .filter(isRecord)
      .map(entry => ({
        content: text(entry, 'content'),
        status: text(entry, 'status')
      })),
    thoughts: text(value, 'thoughts'),
    notices: list(value.notices).map(String),
    stopReason: text(value, 'stop_reason'),
    cost: typeof value.cost === 'number' ? value.cost : null,
    currency: text(value, 'currency'),
    changedFiles: list(value.changed_files).map(String),
    undone: value.undone === true
  };
}

function readStep(value: unknown): IStep {
  const step = isRecord(value) ? value : {};
  return {
    title: text(step, 'title'),
    status: text(step, 'status'),
    arguments: text(step, 'arguments'),
    output: text(step, 'output')
  };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Add a turn, or replace its earlier version. */
export function updatedTurns(
  turns: readonly ITurn[],
  turn: ITurn
): readonly ITurn[] {
  const at = turns.findIndex(({ key }) => key === turn.key);
  return at < 0
    ? [...turns, turn]
    : turns.map((each, index) => (index === at ? turn : each));
}

/** Sum the costs of turns by currency. */
export function totalCosts(
  turns: readonly ITurn[]
): ReadonlyMap<string, number> {
  const costs = new Map<string, number>();
  for (const { cost, currency } of turns) {
    if (cost !== null) {
      costs.set(currency, (costs.get(currency) ?? 0) + cost);
    }
  }
  return costs;
}

export function priceLabel(cost: number, currency: string): string {
  const digits = cost > 0 && cost < 0.01 ? 4 : 2;
  try {
    const style = {
      style: 'currency',
      currency,
      maximumFractionDigits: digits
    };
    return new Intl.NumberFormat(undefined, style as never).format(cost);
  } catch {
    return `${cost.toFixed(digits)} ${currency}`.trim();
  }
}
