import { trans } from '../translation.js';

/** Say what a person does that runs a file, such as “you run make”. */
export function runsWhenLabel(when: string): string {
  return trans.__('runs when %1', when);
}

/** Explain the label. */
export function runsWhenTitle(name: string, when: string): string {
  return trans.__(
    'One of your programs takes %1 as instructions: it runs when %2. Read the change first.',
    name,
    when
  );
}
