import type { ICard } from '../events/card.js';
import { isRecord, text } from '../events/wire.js';

/** Return an Action as a cell that repeats it: a magic, or Python. */
export function actionMagic({ action }: ICard): string {
  const args = action?.args ?? {};
  switch (action?.action) {
    case 'run':
      return runMagic(text(args, 'command'));
    case 'run_ipython':
      return `%%oh_run --cell\n${text(args, 'code')}`;
    default: {
      const { confirmation_state: _, ...sent } = args;
      const options = action?.options ? { oh_jupyter: action.options } : {};
      const wire = { action: action?.action, args: sent, ...options };
      return `oh.execute(${python(wire)})`;
    }
  }
}

function runMagic(command: string): string {
  // A leading dash would be read as an option.
  const dash = command.startsWith('-') ? '-- ' : '';
  return command.includes('\n')
    ? `%%oh_run\n${command}`
    : `%oh_run ${dash}${command}`;
}

/** Format a JSON value as Python. */
function python(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(python).join(', ')}]`;
  }
  if (isRecord(value)) {
    const items = Object.entries(value).map(
      ([key, each]) => `${JSON.stringify(key)}: ${python(each)}`
    );
    return `{${items.join(', ')}}`;
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  return value == null ? 'None' : JSON.stringify(value);
}
