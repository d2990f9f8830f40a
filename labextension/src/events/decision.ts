import { NotLoadedError, RuntimeGoneError } from './errors.js';
import { isRecord, text } from './wire.js';

/** A kernel that is silent for so long has no runtime, or is suspended. */
export const REPLY_TIMEOUT_MS = 10_000;

/** Decision as broadcast to all panels. */
export interface IDecision {
  readonly generation: string;
  /** Id of the Action. */
  readonly id: number;
}

/** Parse the content of an `oh_jupyter_decision` message; null if invalid. */
export function parseDecision(content: unknown): IDecision | null {
  return isRecord(content) &&
    typeof content.generation === 'string' &&
    Number.isSafeInteger(content.id)
    ? { generation: content.generation, id: content.id as number }
    : null;
}

/** Throw the error of a failed reply: NotLoadedError if the Action no longer waits. */
export function checkReply(content: unknown): void {
  const reply = isRecord(content) ? content : {};
  if (reply.status === 'ok') {
    return;
  }
  switch (reply.ename) {
    case 'ConfirmationError':
      throw new NotLoadedError(text(reply, 'evalue'));
    case 'GenerationChangedError':
      throw new RuntimeGoneError();
    default:
      throw new Error(
        text(reply, 'evalue') || 'The kernel sent an unexpected reply.'
      );
  }
}

/** Wait for a kernel's reply, or throw after `timeoutMs`. */
export async function withTimeout<T>(
  reply: Promise<T>,
  timeoutMs = REPLY_TIMEOUT_MS
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error('The kernel does not respond.')),
      timeoutMs
    );
  });
  try {
    return await Promise.race([reply, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
