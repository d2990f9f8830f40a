/** The parts of a keyboard event used here. */
export interface IKey {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
}

const MODIFIERS = new Set(['Control', 'Shift', 'Alt', 'Meta', 'AltGraph']);
const UNKNOWN = new Set(['Dead', 'Process', 'Unidentified']);

/** Return the action language's call for a key; null for modifiers, and for pasting, which has its own event. */
export function keyCall(event: IKey): string | null {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event;
  if (MODIFIERS.has(key) || UNKNOWN.has(key)) {
    return null;
  }
  const isText = [...key].length === 1;
  if ((ctrlKey || metaKey) && key.toLowerCase() === 'v') {
    return null;
  }
  // AltGr, which Windows reports as Control and Alt, types another character.
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

/** Format a call; JSON strings are also Python strings. */
export function call(
  name: string,
  ...args: readonly (string | number)[]
): string {
  return `${name}(${args.map(each => JSON.stringify(each)).join(', ')})`;
}

/** Turn the text of an address bar into a URL. */
export function toUrl(typed: string): string {
  const text = typed.trim();
  if (/^[a-z][a-z0-9+.-]*:(?!\d)/i.test(text)) {
    return text;
  }
  const isLocal = /^(localhost|127\.|\[?::1)/.test(text);
  return `${isLocal ? 'http' : 'https'}://${text}`;
}

/** Add a call to the queue, merging pointer moves and typed text. */
export function queued(waiting: readonly string[], next: string): string[] {
  const last = waiting.at(-1) ?? '';
  const others = waiting.slice(0, -1);
  if (/^mouse_move\(/.test(last) && /^mouse_/.test(next)) {
    return [...others, next];
  }
  const [before, after] = [last, next].map(typedText);
  if (before !== undefined && after !== undefined) {
    return [...others, call('keyboard_type', before + after)];
  }
  return [...waiting, next];
}

function typedText(text: string): string | undefined {
  const [, literal] = /^keyboard_type\((.*)\)$/s.exec(text) ?? [];
  return literal === undefined ? undefined : (JSON.parse(literal) as string);
}
