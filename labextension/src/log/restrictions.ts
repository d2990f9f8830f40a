import { isRecord, text } from '../events/wire.js';
import { trans } from '../translation.js';

/** A capability that the administrator's policy switches off or limits. */
export interface IRestriction {
  readonly capability: string;
  /** "off", or what is allowed. */
  readonly value: string;
  readonly reason: string;
}

/** Parse the restrictions in the kernel's status. */
export function readRestrictions(
  status: Readonly<Record<string, unknown>>
): readonly IRestriction[] {
  const { restrictions: listed } = status;
  return Array.isArray(listed)
    ? listed.filter(isRecord).map(each => ({
        capability: text(each, 'capability'),
        value: text(each, 'value'),
        reason: text(each, 'reason')
      }))
    : [];
}

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
