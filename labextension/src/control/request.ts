import type { Kernel } from '@jupyterlab/services';

import { askOnControl } from '../events/control.js';

/** Operation of the runtime, with its arguments. */
export interface IRequest {
  readonly op: string;
  readonly [field: string]: unknown;
}

/** Run an operation that only the person may run, unlike those over REST, and return its JSON. */
export async function askKernel(
  kernel: Kernel.IKernelConnection,
  request: IRequest,
  timeoutMs?: number
): Promise<unknown> {
  const { body } = await askOnControl(kernel, request, timeoutMs);
  return body === null ? null : JSON.parse(new TextDecoder().decode(body));
}
