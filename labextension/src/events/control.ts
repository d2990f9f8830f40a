import { KernelMessage, type Kernel } from '@jupyterlab/services';

import { checkReply, withTimeout } from './decision.js';
import { RuntimeGoneError } from './errors.js';

/** Type of our control-channel requests. */
const REQUEST = 'oh_jupyter_request';

/** Reply of the runtime: fields, and optional bytes. */
export interface IControlReply {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: DataView | null;
}

/** Send a request on a kernel's control channel, which replies while cells run, or throw. */
export async function askOnControl(
  kernel: Kernel.IKernelConnection,
  content: Readonly<Record<string, unknown>>,
  timeoutMs?: number
): Promise<IControlReply> {
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
    content: content as never
  });
  const future = kernel.sendControlMessage(message, true);
  try {
    const reply = await withTimeout(future.done, timeoutMs);
    checkReply(reply.content);
    const [body] = reply.buffers ?? [];
    return {
      fields: reply.content as unknown as Record<string, unknown>,
      body: body === undefined ? null : viewOf(body)
    };
  } finally {
    future.dispose();
  }
}

function viewOf(buffer: ArrayBuffer | ArrayBufferView): DataView {
  return ArrayBuffer.isView(buffer)
    ? new DataView(
        buffer.buffer as ArrayBuffer,
        buffer.byteOffset,
        buffer.byteLength
      )
    : new DataView(buffer);
}
