import { isRecord, text, type IAction } from './wire.js';

/** Return the name of an action's agent as the kernel does: its persona's, its command's, or its client's; "" if unknown. */
export function agentName({ options }: IAction): string {
  const actor = options?.actor;
  if (!isRecord(actor)) {
    return '';
  }
  const persona = text(actor, 'persona').split(/::|\//).at(-1) ?? '';
  const command = text(actor, 'guest').replace(/-[0-9a-f]{8}$/, '');
  return (
    persona ||
    command.charAt(0).toUpperCase() + command.slice(1) ||
    text(actor, 'client')
  );
}
