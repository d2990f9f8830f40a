import { KernelMessage, type Kernel } from '@jupyterlab/services';

import { answered, readDecision } from './decision.js';
import { RuntimeGoneError } from './errors.js';

/** Type of the control-channel message that the runtime in a kernel answers. */
const REQUEST = 'oh_jupyter_request';

/** What the runtime answers: fields, and bytes if there are any. */
export interface IControlReply {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly body: DataView | null;
}

/**
 * Ask the runtime in a kernel on the control channel, which answers while cells run.
 *
 * @param timeoutMs - Milliseconds after which a silent kernel is given up.
 * @throws NotLoadedError, RuntimeGoneError or another error with the reason.
 */
export async function askOnControl(
  kernel: Kernel.IKernelConnection,
  content: Readonly<Record<string, unknown>>,
  timeoutMs?: number
): Promise<IControlReply> {
  // The request would wait, and reach a kernel that does not know it.
  if (kernel.status === 'restarting' || kernel.status === 'autorestarting') {
    throw new RuntimeGoneError('The kernel is restarting.');
  }
  const message = KernelMessage.createMessage({
    channel: 'control',
    // Not one of Jupyter's own types.
    msgType: REQUEST as 'debug_request',
    session: kernel.clientId,
    username: kernel.username,
    content: content as never
  });
  const future = kernel.sendControlMessage(message, true);
  try {
    const reply = await answered(future.done, timeoutMs);
    readDecision(reply.content);
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
