import type { Kernel, KernelMessage } from '@jupyterlab/services';

import { KernelModel } from '../control/model.js';
import { askKernel } from '../control/request.js';
import { isRecord } from '../events/wire.js';
import type { IKernelEvents } from '../tokens.js';
import {
  readConversation,
  readTurn,
  updatedTurns,
  type IConversation
} from './turn.js';

const MESSAGE_TYPE = 'oh_jupyter_turn';

/** The longest possible timer, because a turn may take hours. */
const WHOLE_TURN_MS = 2 ** 31 - 1;

/** Conversation with the agents of a kernel, started here or in a cell. */
export class AgentModel extends KernelModel {
  /** Null until the kernel has replied. */
  conversation: IConversation | null = null;
  /** Prompt whose turn has not started yet; "" if none. */
  sending = '';

  /** Send a prompt to an agent, by default the one used last; throw if the turn fails. */
  async prompt(
    text: string,
    agent: string | null,
    isNew: boolean
  ): Promise<void> {
    this.sending = text;
    this.changed.emit();
    const request = { op: 'prompt_agent', text, agent, new: isNew, wait: true };
    try {
      this._update(await askKernel(this.kernel, request, WHOLE_TURN_MS));
    } finally {
      this.sending = '';
      void this.refresh();
      this.changed.emit();
    }
  }

  async interrupt(agent: string): Promise<void> {
    await askKernel(this.kernel, { op: 'interrupt_agent', agent });
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const reply = await askKernel(kernel, { op: 'agents' });
    this.conversation = readConversation(reply);
  }

  protected override forget(): void {
    this.conversation = null;
  }

  protected override follow(
    before: IKernelEvents | null,
    now: IKernelEvents | null
  ): void {
    before?.sessionContext.iopubMessage.disconnect(this._onMessage, this);
    now?.sessionContext.iopubMessage.connect(this._onMessage, this);
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    const type: string = message.header.msg_type;
    const content: unknown = message.content;
    if (type === MESSAGE_TYPE && isRecord(content)) {
      this._update(content.turn);
    }
  }

  private _update(value: unknown): void {
    const turn = readTurn(value);
    if (turn && this.conversation) {
      const turns = updatedTurns(this.conversation.turns, turn);
      this.conversation = {
        ...this.conversation,
        current: turn.agent,
        turns
      };
      if (turn.prompt === this.sending) {
        this.sending = '';
      }
      this.changed.emit();
    }
  }
}
