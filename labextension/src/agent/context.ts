/** Something that goes with a prompt. */
export interface IContextItem {
  /** Text that is sent, or a variable or file that the kernel looks up by its name. */
  readonly kind: 'text' | 'variable' | 'file';
  /** Name for the person and the agent. */
  readonly name: string;
  /** What a text is: a cell, the error of one, or a selection. */
  readonly of?: 'cell' | 'error' | 'selection';
  /** Address of a text. */
  readonly id?: string;
  readonly text?: string;
  /** Short description, such as a type. */
  readonly detail?: string;
}

/** Prompt as it is sent, or waits to be sent. */
export interface IPrompt {
  /** Identifies it to the kernel, which sends it to an agent only once. */
  readonly key: string;
  readonly text: string;
  /** Name of an agent; null for the one used last. */
  readonly agent: string | null;
  /** Whether it starts a new conversation. */
  readonly isNew: boolean;
  /** Values of the agent's options. */
  readonly options: Readonly<Record<string, string>>;
  readonly context: readonly IContextItem[];
}

/** Return a key under which an item is in a prompt only once. */
export function itemKey({ kind, of, id, name }: IContextItem): string {
  return [kind, of ?? '', id ?? name].join('/');
}

/** Return the wire form of a prompt's context. */
export function wireContext(
  context: readonly IContextItem[]
): readonly Record<string, string>[] {
  return context.map(({ kind, name, id = '', text = '' }) =>
    kind === 'text' ? { kind, name, id, text } : { kind, name }
  );
}

/** Part of a word after `@` that a person is typing, and where it begins. */
export interface IMention {
  readonly start: number;
  readonly query: string;
}

/** Return the mention that ends at a position of a text; null if there is none. */
export function mentionAt(prompt: string, position: number): IMention | null {
  const match = /(?:^|\s)@([^\s@]*)$/.exec(prompt.slice(0, position));
  const query = match?.[1];
  return query === undefined
    ? null
    : { start: position - query.length - 1, query };
}

/** Replace a mention by a name, which the prompt keeps. */
export function completeMention(
  prompt: string,
  { start, query }: IMention,
  name: string
): string {
  const rest = prompt.slice(start + 1 + query.length);
  return `${prompt.slice(0, start)}@${name}${rest.startsWith(' ') ? '' : ' '}${rest}`;
}
