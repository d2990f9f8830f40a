import { isRecord, text } from '../events/wire.js';
import { trans } from '../translation.js';

/** Tool call of an agent. */
export interface IStep {
  readonly title: string;
  /** One of pending, in_progress, completed, failed. */
  readonly status: string;
  readonly arguments: string;
  readonly output: string;
  /** Paths of the files that the agent reports as changed. */
  readonly files: readonly string[];
}

/** Prompt with the agent's text and tool calls. */
export interface ITurn {
  /** Agent and start time. */
  readonly key: string;
  readonly agent: string;
  readonly prompt: string;
  /** Key of the prompt that began it; "" without. */
  readonly request: string;
  /** Names of what went with the prompt. */
  readonly attachments: readonly string[];
  /** Start in seconds since the epoch. */
  readonly began: number;
  /** Id of the prompt's event. */
  readonly firstEvent: number;
  /** Text and steps in order. */
  readonly parts: readonly (string | IStep)[];
  /** For each part, the id of the latest event when it began. */
  readonly partEvents: readonly number[];
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
  /** Tokens of the turn; 0 if the agent does not report them. */
  readonly tokens: number;
  readonly changedFiles: readonly string[];
  /** Changed files that programs of the person run, and when. */
  readonly runs: readonly { readonly path: string; readonly when: string }[];
  /** Id of the checkpoint at its start; null without. */
  readonly checkpoint: number | null;
  /** Whether a rewind has undone its changes. */
  readonly undone: boolean;
}

export interface IAgent {
  readonly name: string;
  /** One of busy, ready, installed, missing, forbidden. */
  readonly state: string;
  readonly installation: string;
  /** Why an administrator forbids it; "" if it is allowed. */
  readonly reason: string;
  /** Options of its session; none before it runs. */
  readonly options: readonly IAgentOption[];
}

/** Return whether an agent can be prompted. */
export function canUse({ state }: IAgent): boolean {
  return state !== 'missing' && state !== 'forbidden';
}

/** Option of an agent, such as its mode or model. */
export interface IAgentOption {
  readonly id: string;
  readonly name: string;
  readonly current: string;
  /** Values; none for a switch, which is `on` or `off`. */
  readonly choices: readonly {
    readonly value: string;
    readonly name: string;
    readonly description: string;
  }[];
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
    installation: text(each, 'installation'),
    reason: text(each, 'reason'),
    options: list(each.options).filter(isRecord).map(readOption)
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
    request: text(value, 'request'),
    attachments: list(value.attachments).map(String),
    began: value.began,
    firstEvent: integer(value.first_event) ?? -1,
    parts: list(value.parts).map(part =>
      typeof part === 'string' ? part : readStep(part)
    ),
    partEvents: list(value.part_events).map(each => integer(each) ?? -1),
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
    tokens: integer(isRecord(value.usage) ? value.usage.total_tokens : 0) ?? 0,
    changedFiles: list(value.changed_files).map(String),
    runs: Object.entries(isRecord(value.runs_when) ? value.runs_when : {}).map(
      ([path, when]) => ({ path, when: String(when) })
    ),
    checkpoint: integer(value.checkpoint),
    undone: value.undone === true
  };
}

function readOption(value: Record<string, unknown>): IAgentOption {
  return {
    id: text(value, 'id'),
    name: text(value, 'name'),
    current: text(value, 'current'),
    choices: list(value.choices)
      .filter(isRecord)
      .map(each => ({
        value: text(each, 'value'),
        name: text(each, 'name') || text(each, 'value'),
        description: text(each, 'description')
      }))
  };
}

function readStep(value: unknown): IStep {
  const step = isRecord(value) ? value : {};
  return {
    title: text(step, 'title'),
    status: text(step, 'status'),
    arguments: text(step, 'arguments'),
    output: text(step, 'output'),
    files: list(isRecord(value) ? value.files : []).map(String)
  };
}

function integer(value: unknown): number | null {
  return Number.isInteger(value) ? (value as number) : null;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Return whether a turn ended without being stopped and without failing. */
export function hasSucceeded({ stopReason }: ITurn): boolean {
  return !['', 'cancelled', 'failed', 'refusal'].includes(stopReason);
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

/** Return the cost of turns, such as “$0.02”; "" if no agent reports it. */
export function costsLabel(turns: readonly ITurn[]): string {
  return [...totalCosts(turns)]
    .map(([currency, cost]) => priceLabel(cost, currency))
    .join(' + ');
}

/** Return the tokens of turns, such as “12K tokens”; "" if no agent reports them. */
export function tokensLabel(turns: readonly ITurn[]): string {
  const count = turns.reduce((sum, { tokens }) => sum + tokens, 0);
  const short = new Intl.NumberFormat(undefined, { notation: 'compact' });
  return count === 0
    ? ''
    : trans._n('%2 token', '%2 tokens', count, short.format(count));
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
