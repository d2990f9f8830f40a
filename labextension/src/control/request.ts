import type { Kernel } from '@jupyterlab/services';

import { askOnControl } from '../events/control.js';

/** Operation of the runtime, with its arguments. */
export interface IRequest {
  readonly op: string;
  readonly [field: string]: unknown;
}

/**
 * Run an operation that is reserved for the person.
 *
 * The control channel belongs to the person; a REST request may come from an agent.
 *
 * @returns The JSON of the reply, or null.
 * @throws Error with the reason on failure.
 */
export async function askKernel(
  kernel: Kernel.IKernelConnection,
  request: IRequest,
  timeoutMs?: number
): Promise<unknown> {
  const { body } = await askOnControl(kernel, request, timeoutMs);
  return body === null ? null : JSON.parse(new TextDecoder().decode(body));
}
