import { isRecord, text, type IAction } from './wire.js';

/** Return the name under which the person started an action's agent, such as claude; "" for others. */
export function guestCommand({ options }: IAction): string {
  const actor = options?.actor;
  return isRecord(actor)
    ? text(actor, 'guest').replace(/-[0-9a-f]{8}$/, '')
    : '';
}

/** Return the name of an action's agent as the kernel does: its persona's, its command's, or its client's; "" if unknown. */
export function agentName(action: IAction): string {
  const actor = action.options?.actor;
  if (!isRecord(actor)) {
    return '';
  }
  const persona = text(actor, 'persona').split(/::|\//).at(-1) ?? '';
  const command = guestCommand(action);
  return (
    persona ||
    command.charAt(0).toUpperCase() + command.slice(1) ||
    text(actor, 'client')
  );
}
