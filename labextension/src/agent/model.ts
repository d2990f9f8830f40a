import type { Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import { KernelModel } from '../control/kernelmodel.js';
import type {
  IConversation,
  ITurn as IWireTurn
} from '../control/operations.js';
import { askKernel } from '../control/request.js';
import { RuntimeGoneError, reasonOf } from '../events/errors.js';
import { isRecord } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { PromptBox } from './box.js';
import { wireContext, type IContextItem, type IPrompt } from './context.js';
import type { Drafts } from './drafts.js';
import {
  canUse,
  hasSucceeded,
  keyed,
  updatedTurns,
  type ITurn
} from './turn.js';

const MESSAGE_TYPE = 'oh_jupyter_turn';

/** The longest possible timer, because a turn may take hours. */
const WHOLE_TURN_MS = 2 ** 31 - 1;

/** Agents of a kernel, and their turns. */
interface IKeyedConversation extends IConversation {
  readonly turns: readonly ITurn[];
}

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
  conversation: IKeyedConversation | null = null;
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
    return this.conversation?.turns.find(
      ({ stop_reason }) => stop_reason === ''
    );
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
    const { agents = [], current = null } = this.conversation ?? {};
    const usable = agents.filter(canUse).map(({ name }) => name);
    const wanted = [current, this.preferred].find(
      each => each !== null && usable.includes(each)
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
    askKernel(this.kernel, { op: 'interrupt_agent', agent }).catch(
      (error: unknown) => {
        if (box) {
          box.failure = reasonOf(error);
        }
      }
    );
  }

  /** Find variables and files whose name contains a text. */
  async find(query: string): Promise<readonly IContextItem[]> {
    const { kernel } = this;
    const [variables, files] = await Promise.allSettled([
      askKernel(kernel, { op: 'variables', pattern: `*${query}*` }),
      askKernel(kernel, { op: 'workspace_files', text: query })
    ]);
    const rows =
      variables.status === 'fulfilled' ? variables.value.variables : [];
    const names = files.status === 'fulfilled' ? files.value : [];
    return [
      ...rows.map(({ name, type: detail }) => ({
        kind: 'variable' as const,
        name,
        detail
      })),
      ...names.map(name => ({ kind: 'file' as const, name }))
    ];
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const reply = await askKernel(kernel, { op: 'agents' });
    this.conversation = { ...reply, turns: reply.turns.map(keyed) };
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
      const turn = content.turn as IWireTurn;
      this._update(turn);
      if (turn.stop_reason && this.box?.queue.length) {
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
        box.end(turn?.stop_reason !== 'cancelled');
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

  private async _turn(
    box: PromptBox,
    prompt: IPrompt
  ): Promise<IWireTurn | null> {
    const { key, text, agent, isNew, options, context } = prompt;
    const kernel = box.events.sessionContext.session?.kernel;
    if (!kernel) {
      throw new RuntimeGoneError();
    }
    const turn = await askKernel(
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
    if (turn && box === this.box) {
      this._update(turn);
    }
    return turn;
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

  private _update(turn: IWireTurn): void {
    if (this.conversation) {
      const turns = updatedTurns(this.conversation.turns, keyed(turn));
      this.conversation = {
        ...this.conversation,
        current: turn.agent,
        turns
      };
      this._dropKnown();
      this.changed.emit();
    }
  }

  private readonly _boxes = new WeakMap<IKernelEvents, PromptBox>();
}
