/** The extension is not installed in the server, or not loaded in the kernel. */
export class NotLoadedError extends Error {}

/** The runtime that kept an event is gone, and its log with it. */
export class RuntimeGoneError extends Error {
  constructor(message = 'The runtime is gone.') {
    super(message);
  }
}

/** What an error says. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
