import { KernelMessage, type Kernel } from '@jupyterlab/services';

import { checkReply, withTimeout } from '../events/decision.js';
import { RuntimeGoneError } from '../events/errors.js';
import type { IReplies, OperationRequest } from './operations.js';

/** Type of our control-channel requests. */
const REQUEST = 'oh_jupyter_request';

/** Name of an operation. */
type Name = OperationRequest['op'];

/** Operation with its arguments, and how it is asked. */
export type ControlRequest<Op extends Name> = {
  readonly op: Op;
  /** The expected runtime; without one, any. */
  readonly generation?: string;
  /** Name by which other requests refer to this one. */
  readonly key?: string;
} & Extract<OperationRequest, { readonly op: Op }>;

/** Send a request on a kernel's control channel, which replies while cells run, or throw. */
export async function askKernel<Op extends Name>(
  kernel: Kernel.IKernelConnection,
  request: ControlRequest<Op>,
  timeoutMs?: number
): Promise<IReplies[Op]> {
  // The request would wait and reach a kernel without a runtime.
  if (kernel.status === 'restarting' || kernel.status === 'autorestarting') {
    throw new RuntimeGoneError('The kernel is restarting.');
  }
  const message = KernelMessage.createMessage({
    channel: 'control',
    // Not one of Jupyter's types.
    msgType: REQUEST as 'debug_request',
    session: kernel.clientId,
    username: kernel.username,
    content: request as never
  });
  const future = kernel.sendControlMessage(message, true);
  try {
    const reply = await withTimeout(future.done, timeoutMs);
    checkReply(reply.content);
    const [body] = reply.buffers ?? [];
    const json = body === undefined ? 'null' : new TextDecoder().decode(body);
    return JSON.parse(json) as IReplies[Op];
  } finally {
    future.dispose();
  }
}
