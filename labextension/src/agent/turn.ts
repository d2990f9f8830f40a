import type { IAgent, ITurn as IWireTurn } from '../control/operations.js';
import { trans } from '../translation.js';

/** Prompt with the agent's text and tool calls. */
export interface ITurn extends IWireTurn {
  /** Agent and start time. */
  readonly key: string;
}

/** Return whether an agent can be prompted. */
export function canUse({ state }: IAgent): boolean {
  return state !== 'missing' && state !== 'forbidden';
}

/** Return a turn with its key. */
export function keyed(turn: IWireTurn): ITurn {
  return { ...turn, key: `${turn.agent}/${turn.began}` };
}

/** Return whether a turn ended without being stopped and without failing. */
export function hasSucceeded({ stop_reason }: ITurn): boolean {
  return !['', 'cancelled', 'failed', 'refusal'].includes(stop_reason);
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
  const count = turns.reduce(
    (sum, { usage }) => sum + (usage.total_tokens ?? 0),
    0
  );
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
