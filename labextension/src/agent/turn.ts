import { isRecord, text } from '../events/wire.js';

/** What an agent did with a tool. */
export interface IStep {
  readonly title: string;
  /** pending, in_progress, completed or failed. */
  readonly status: string;
  readonly arguments: string;
  readonly output: string;
}

/** One prompt, and what the agent said and did until it was done. */
export interface ITurn {
  /** The agent and the moment of its beginning. */
  readonly key: string;
  readonly agent: string;
  readonly prompt: string;
  /** Seconds since the epoch. */
  readonly began: number;
  /** What it said, and its steps, in their order. */
  readonly parts: readonly (string | IStep)[];
  readonly plan: readonly {
    readonly content: string;
    readonly status: string;
  }[];
  readonly thoughts: string;
  /** What is to be said about it, such as tools that are missing. */
  readonly notices: readonly string[];
  /** Why it ended; "" while it goes on. */
  readonly stopReason: string;
  /** Null where the agent does not tell. */
  readonly cost: number | null;
  readonly currency: string;
  readonly changedFiles: readonly string[];
}

/** An agent that can be asked. */
export interface IAgent {
  readonly name: string;
  /** busy, ready, installed or missing. */
  readonly state: string;
  /** How it is installed. */
  readonly installation: string;
}

/** The agents of a kernel, and what was said. */
export interface IConversation {
  readonly agents: readonly IAgent[];
  /** The agent that was asked last; "" if none was. */
  readonly current: string;
  readonly turns: readonly ITurn[];
}

/** @throws Error if the kernel sent something else. */
export function readConversation(reply: unknown): IConversation {
  if (
    !isRecord(reply) ||
    !Array.isArray(reply.agents) ||
    !Array.isArray(reply.turns)
  ) {
    throw new Error('The kernel sent a conversation of an unknown form.');
  }
  const agents = reply.agents.filter(isRecord).map(each => ({
    name: text(each, 'name'),
    state: text(each, 'state'),
    installation: text(each, 'installation')
  }));
  const turns = reply.turns.map(readTurn).filter(turn => turn !== null);
  return { agents, current: text(reply, 'current'), turns };
}

/** Read one turn; null if it is none. */
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
    changedFiles: list(value.changed_files).map(String)
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

/** The turns with one that is new or went on. */
export function withTurn(
  turns: readonly ITurn[],
  turn: ITurn
): readonly ITurn[] {
  const at = turns.findIndex(({ key }) => key === turn.key);
  return at < 0
    ? [...turns, turn]
    : turns.map((each, index) => (index === at ? turn : each));
}

/** What all turns have cost together, by currency. */
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

/** A price as people write it. */
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
