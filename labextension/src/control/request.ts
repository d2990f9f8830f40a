import type { Kernel } from '@jupyterlab/services';

import { askOnControl } from '../events/control.js';

/** An operation of the runtime, by its name, with its arguments. */
export interface IRequest {
  readonly op: string;
  readonly [field: string]: unknown;
}

/**
 * Ask the runtime in a kernel for what a person may ask alone.
 *
 * What comes over the control channel is the person's: what comes over REST may
 * come from an agent.
 *
 * @param timeoutMs - Milliseconds after which a silent kernel is given up.
 * @returns The JSON of the answer; null if it has none.
 * @throws Error with the reason, if the runtime refuses or does not answer.
 */
export async function askKernel(
  kernel: Kernel.IKernelConnection,
  request: IRequest,
  timeoutMs?: number
): Promise<unknown> {
  const { body } = await askOnControl(kernel, request, timeoutMs);
  return body === null ? null : JSON.parse(new TextDecoder().decode(body));
}
