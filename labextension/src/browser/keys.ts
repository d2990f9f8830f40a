/** What a key says, as far as it matters here. */
export interface IKey {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
}

const MODIFIERS = new Set(['Control', 'Shift', 'Alt', 'Meta', 'AltGraph']);
const UNKNOWN = new Set(['Dead', 'Process', 'Unidentified']);

/**
 * The call of the action language that presses a key in the page.
 *
 * @returns null for keys that do nothing by themselves, and for pasting, whose
 *   text comes with an event of its own.
 */
export function keyCall(event: IKey): string | null {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event;
  if (MODIFIERS.has(key) || UNKNOWN.has(key)) {
    return null;
  }
  const isText = [...key].length === 1;
  if ((ctrlKey || metaKey) && key.toLowerCase() === 'v') {
    return null;
  }
  // With AltGr, which Windows calls Control and Alt, a letter is another one.
  if (isText && ctrlKey === altKey && !metaKey) {
    return call('keyboard_type', key);
  }
  const names = [
    ctrlKey && 'Control',
    altKey && 'Alt',
    metaKey && 'Meta',
    shiftKey && 'Shift',
    key === ' ' ? 'Space' : key
  ];
  return call('keyboard_press', names.filter(Boolean).join('+'));
}

/** A call of the action language; strings of JSON are strings of Python, too. */
export function call(
  name: string,
  ...args: readonly (string | number)[]
): string {
  return `${name}(${args.map(each => JSON.stringify(each)).join(', ')})`;
}

/** What people type into an address bar, as an address. */
export function addressOf(typed: string): string {
  const text = typed.trim();
  if (/^[a-z][a-z0-9+.-]*:(?!\d)/i.test(text)) {
    return text;
  }
  const isLocal = /^(localhost|127\.|\[?::1)/.test(text);
  return `${isLocal ? 'http' : 'https'}://${text}`;
}

/**
 * Add a call to those that wait for their turn.
 *
 * Where the pointer was, or a part of a word, need not be sent by itself.
 */
export function queued(waiting: readonly string[], next: string): string[] {
  const last = waiting.at(-1) ?? '';
  const kept = waiting.slice(0, -1);
  if (/^mouse_move\(/.test(last) && /^mouse_/.test(next)) {
    return [...kept, next];
  }
  const [before, after] = [last, next].map(typedText);
  if (before !== undefined && after !== undefined) {
    return [...kept, call('keyboard_type', before + after)];
  }
  return [...waiting, next];
}

function typedText(text: string): string | undefined {
  const [, literal] = /^keyboard_type\((.*)\)$/s.exec(text) ?? [];
  return literal === undefined ? undefined : (JSON.parse(literal) as string);
}
