import type { Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import { KernelModel } from '../control/kernelmodel.js';
import { askKernel } from '../control/request.js';
import { RuntimeGoneError, reasonOf } from '../events/errors.js';
import { isRecord } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { PromptBox } from './box.js';
import {
  readFiles,
  readVariables,
  wireContext,
  type IContextItem,
  type IPrompt
} from './context.js';
import type { Drafts } from './drafts.js';
import {
  canUse,
  hasSucceeded,
  readConversation,
  readTurn,
  updatedTurns,
  type IConversation,
  type ITurn
} from './turn.js';

const MESSAGE_TYPE = 'oh_jupyter_turn';

/** The longest possible timer, because a turn may take hours. */
const WHOLE_TURN_MS = 2 ** 31 - 1;

/** Conversation with the agents of a kernel, started here or in a cell. */
export class AgentModel extends KernelModel {
  /** @param drafts - Keeps prompt boxes through a reload of the page. */
  constructor(
    runtime: IOhRuntime,
    private readonly _drafts: Drafts | null = null
  ) {
    super(runtime);
  }

  /** Null until the kernel has replied. */
  conversation: IConversation | null = null;
  /** Agent to use before any was asked; "" for the first installed one. */
  preferred = '';

  /** Prompt box of the current notebook; null without one. */
  get box(): PromptBox | null {
    const { events } = this;
    if (events && !this._boxes.has(events)) {
      this._boxes.set(events, new PromptBox(events, this._drafts));
    }
    return events ? this._boxes.get(events)! : null;
  }

  /** Turn that is running; undefined if there is none. */
  get running(): ITurn | undefined {
    return this.conversation?.turns.find(({ stopReason }) => stopReason === '');
  }

  get isBusy(): boolean {
    return this.running !== undefined || (this.box?.sent ?? null) !== null;
  }

  /** Send a prompt now, or after the current turn. */
  async send(prompt: IPrompt): Promise<void> {
    const { box } = this;
    if (box && this.isBusy) {
      box.enqueue(prompt);
    } else if (box) {
      await this._prompt(box, prompt);
    }
  }

  /** Agent for prompts that name none; "" if none is installed. */
  get defaultAgent(): string {
    const { agents = [], current = '' } = this.conversation ?? {};
    const usable = agents.filter(canUse).map(({ name }) => name);
    const wanted = [current, this.preferred].find(each =>
      usable.includes(each)
    );
    return wanted ?? usable[0] ?? '';
  }

  /** Send a text to an agent, by default the one used last; without one, it stays in the box. */
  async sendText(text: string, more: Partial<IPrompt> = {}): Promise<void> {
    if (!this.conversation) {
      await this.refresh();
    }
    const agent = more.agent ?? (this.defaultAgent || null);
    const defaults = { isNew: false, options: {}, context: [] };
    const prompt = { key: UUID.uuid4(), text, ...defaults, ...more, agent };
    if (agent === null) {
      this.box?.restore(prompt);
    } else {
      await this.send(prompt);
    }
  }

  /** Send the first prompt of a queue that waits for the person. */
  async sendNext(): Promise<void> {
    const { box } = this;
    const [prompt] = box?.queue ?? [];
    if (box && prompt && !this.isBusy) {
      box.removeQueued(prompt);
      await this._prompt(box, prompt);
    }
  }

  /** End the turn of an agent; the box shows why it does not end. */
  stop(agent: string): void {
    const { box } = this;
    const request = { op: 'interrupt_agent', agent };
    askKernel(this.kernel, request).catch((error: unknown) => {
      if (box) {
        box.failure = reasonOf(error);
      }
    });
  }

  /** Find variables and files whose name contains a text. */
  async find(query: string): Promise<readonly IContextItem[]> {
    const { kernel } = this;
    const replies = await Promise.allSettled([
      askKernel(kernel, { op: 'variables', pattern: `*${query}*` }),
      askKernel(kernel, { op: 'workspace_files', text: query })
    ]);
    const [variables, files] = replies.map(each =>
      each.status === 'fulfilled' ? each.value : null
    );
    return [...readVariables(variables), ...readFiles(files)];
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const reply = await askKernel(kernel, { op: 'agents' });
    this.conversation = readConversation(reply);
    this._dropKnown();
    this._continue();
  }

  protected override forget(): void {
    this.conversation = null;
  }

  protected override onMessage(type: string, content: unknown): void {
    if (type === MESSAGE_TYPE && isRecord(content)) {
      if (content.agents_changed === true) {
        void this.refresh();
        return;
      }
      const turn = this._update(content.turn);
      if (turn?.stopReason && this.box?.queue.length) {
        void this.refresh();
      }
    }
  }

  /** Send a prompt, and those that are queued after it. */
  private async _prompt(box: PromptBox, prompt: IPrompt): Promise<void> {
    let next: IPrompt | undefined = prompt;
    while (next) {
      box.begin(next);
      this.changed.emit();
      let isRepeated = false;
      try {
        const turn = await this._turn(box, next);
        isRepeated = turn === null;
        box.end(turn?.stopReason !== 'cancelled');
      } catch (error) {
        const hasBegun = this._lastRequest(box) === next.key;
        box.end(false, reasonOf(error));
        if (!hasBegun) {
          box.restore(next);
        }
      }
      void this.refresh();
      // The queue follows at the end of the turn that another window began.
      next = isRepeated ? undefined : box.next();
    }
    this.changed.emit();
  }

  private async _turn(box: PromptBox, prompt: IPrompt): Promise<ITurn | null> {
    const { key, text, agent, isNew, options, context } = prompt;
    const kernel = box.events.sessionContext.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    const reply = await askKernel(
      kernel,
      {
        op: 'prompt_agent',
        key,
        text,
        agent,
        new: isNew,
        options,
        context: wireContext(context),
        wait: true
      },
      WHOLE_TURN_MS
    );
    if (box === this.box) {
      this._update(reply);
    }
    return readTurn(reply);
  }

  private _lastRequest(box: PromptBox): string | undefined {
    return box === this.box
      ? this.conversation?.turns.at(-1)?.request
      : undefined;
  }

  /** Continue with the queue after a turn that was started elsewhere. */
  private _continue(): void {
    const { box, conversation } = this;
    const last = conversation?.turns.at(-1);
    const isAgentBusy = conversation?.agents.some(
      ({ state }) => state === 'busy'
    );
    if (!box || box.queue.length === 0 || this.isBusy || isAgentBusy) {
      return;
    }
    if (!last || !hasSucceeded(last)) {
      box.hold();
    }
    const next = box.next();
    if (next) {
      void this._prompt(box, next);
    }
  }

  /** Drop queued prompts that were sent before a reload, or by another window. */
  private _dropKnown(): void {
    const turns = this.conversation?.turns ?? [];
    this.box?.removeKnown(new Set(turns.map(({ request }) => request)));
  }

  private _update(value: unknown): ITurn | null {
    const turn = readTurn(value);
    if (turn && this.conversation) {
      const turns = updatedTurns(this.conversation.turns, turn);
      this.conversation = {
        ...this.conversation,
        current: turn.agent,
        turns
      };
      this._dropKnown();
      this.changed.emit();
    }
    return turn;
  }

  private readonly _boxes = new WeakMap<IKernelEvents, PromptBox>();
}
