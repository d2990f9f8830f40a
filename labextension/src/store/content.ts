import type { Contents } from '@jupyterlab/services';

type Format = Contents.FileFormat;

/** Encode saved content. */
export function encoded(
  content: unknown,
  format: Format | undefined
): Uint8Array<ArrayBuffer> {
  if (format === 'base64') {
    return Uint8Array.from(atob(String(content)), each => each.charCodeAt(0));
  }
  const text =
    format === 'json'
      ? `${JSON.stringify(content, null, 1)}\n`
      : String(content ?? '');
  return new TextEncoder().encode(text);
}

/** Decode bytes as JSON, text, or base64; throw if requested text is binary. */
export function decoded(
  bytes: Uint8Array,
  format: Format | undefined
): { content: unknown; format: Format } {
  if (format === 'base64') {
    return { content: base64(bytes), format };
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    if (format) {
      throw new Error('This file is not UTF-8 text.');
    }
    return { content: base64(bytes), format: 'base64' };
  }
  return format === 'json'
    ? { content: JSON.parse(text), format }
    : { content: text, format: 'text' };
}

function base64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  }
  return btoa(pieces.join(''));
}
