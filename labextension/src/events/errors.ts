/** The extension is not installed in the server, or not loaded in the kernel. */
export class NotLoadedError extends Error {}

/** The runtime that kept an event is gone, and its log with it. */
export class RuntimeGoneError extends Error {}
