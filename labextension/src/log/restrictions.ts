import type { IRestriction } from '../control/operations.js';
import { trans } from '../translation.js';

/** Name a restriction in few words. */
export function restrictionLabel({ capability, value }: IRestriction): string {
  const names: Record<string, string> = {
    browser: trans.__('browser'),
    shell: trans.__('shell'),
    network: trans.__('network'),
    agents: trans.__('agents'),
    plugins: trans.__('plugins'),
    approvals_over_rest: trans.__('approvals over REST')
  };
  const name = names[capability] ?? capability;
  return value === 'off'
    ? trans.__('%1 off', name)
    : trans.__('%1: %2', name, value);
}
