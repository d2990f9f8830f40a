/** The extension is not installed in the server, or not loaded in the kernel. */
export class NotLoadedError extends Error {}

/** The runtime that recorded an event ended, and its log with it. */
export class RuntimeGoneError extends Error {
  constructor(message = 'The runtime has ended.') {
    super(message);
  }
}

/** Return the message of an error. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
