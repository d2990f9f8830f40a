import type { Kernel, KernelMessage } from '@jupyterlab/services';

import { KernelModel } from '../control/model.js';
import { askKernel } from '../control/request.js';
import { isRecord } from '../events/wire.js';
import type { IKernelEvents } from '../tokens.js';
import {
  readConversation,
  readTurn,
  withTurn,
  type IConversation
} from './turn.js';

const MESSAGE_TYPE = 'oh_jupyter_turn';

/** Milliseconds, the most that a timer takes: a turn may last for hours. */
const WHOLE_TURN_MS = 2 ** 31 - 1;

/** The conversation with the agents of a kernel, whoever asked them: this panel or a cell. */
export class AgentModel extends KernelModel {
  /** Null until the kernel has answered. */
  get conversation(): IConversation | null {
    return this._conversation;
  }

  /** The prompt that was sent, until its turn begins; "" if there is none. */
  get sending(): string {
    return this._sending;
  }

  /**
   * Ask an agent.
   *
   * @param agent - Its name; null for the one that was asked last.
   * @param isNew - Begin a new conversation.
   * @throws Error if it does not begin, or fails.
   */
  async prompt(
    text: string,
    agent: string | null,
    isNew: boolean
  ): Promise<void> {
    this._sending = text;
    this.emitChanged();
    const request = { op: 'prompt_agent', text, agent, new: isNew, wait: true };
    try {
      this._take(await askKernel(this.kernel, request, WHOLE_TURN_MS));
    } finally {
      this._sending = '';
      void this.refresh();
      this.emitChanged();
    }
  }

  /** End the turn of an agent. */
  async interrupt(agent: string): Promise<void> {
    await askKernel(this.kernel, { op: 'interrupt_agent', agent });
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const reply = await askKernel(kernel, { op: 'agents' });
    this._conversation = readConversation(reply);
  }

  protected override forget(): void {
    this._conversation = null;
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
      this._take(content.turn);
    }
  }

  private _take(value: unknown): void {
    const turn = readTurn(value);
    if (turn && this._conversation) {
      const turns = withTurn(this._conversation.turns, turn);
      this._conversation = {
        ...this._conversation,
        current: turn.agent,
        turns
      };
      if (turn.prompt === this._sending) {
        this._sending = '';
      }
      this.emitChanged();
    }
  }

  private _conversation: IConversation | null = null;
  private _sending = '';
}
