import { NotLoadedError, RuntimeGoneError } from './errors.js';
import { isRecord, text } from './wire.js';

/** Milliseconds after which a kernel that says nothing has no runtime, or is suspended. */
export const ANSWER_TIMEOUT_MS = 10_000;

/** What every panel is told when somebody has decided. */
export interface IDecision {
  readonly generation: string;
  /** Of the Action. */
  readonly id: number;
}

/** Read the content of an `oh_jupyter_decision` message; null if it is not one. */
export function parseDecision(content: unknown): IDecision | null {
  return isRecord(content) &&
    typeof content.generation === 'string' &&
    Number.isSafeInteger(content.id)
    ? { generation: content.generation, id: content.id as number }
    : null;
}

/**
 * Read the runtime's answer to a decision.
 *
 * @throws NotLoadedError if the Action does not wait any more, RuntimeGoneError
 *   if its runtime is no more; another error with the reason.
 */
export function readDecision(content: unknown): void {
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
        text(reply, 'evalue') || 'The kernel sent an answer of an unknown form.'
      );
  }
}

/**
 * Wait for a kernel's answer, but not for ever.
 *
 * @throws Error if there is none within `timeoutMs` milliseconds.
 */
export async function answered<T>(
  answer: Promise<T>,
  timeoutMs = ANSWER_TIMEOUT_MS
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error('The kernel does not answer.')),
      timeoutMs
    );
  });
  try {
    return await Promise.race([answer, silence]);
  } finally {
    clearTimeout(timer);
  }
}
