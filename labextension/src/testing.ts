/** Events, cards and their sources for tests. */
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import { keyed, type ITurn } from './agent/turn.js';
import type {
  IProgress,
  IStep,
  ITurn as IWireTurn
} from './control/operations.js';
import type { IHistoryPage, IVerdict, IWaiting } from './events/api.js';
import {
  UNKNOWN,
  type EventRef,
  type ICard,
  type IConfirmation
} from './events/card.js';
import {
  outcomeOf,
  type IAction,
  type IObservation,
  type WireEvent
} from './events/wire.js';
import { setTranslation } from './translation.js';

/** Leave texts in English: JupyterLab's translator cannot be imported outside a bundle. */
export function translateAsIs(): void {
  setTranslation({
    __: (text: string, ...values: unknown[]) => filled(text, values),
    _n: (one: string, many: string, count: number, ...values: unknown[]) =>
      filled(count === 1 ? one : many, [count, ...values])
  } as TranslationBundle);
}

function filled(text: string, values: readonly unknown[]): string {
  return text.replace(/%(\d)/g, (_, n: string) =>
    String(values[Number(n) - 1])
  );
}

/** A turn of an agent. */
export function turn(fields: Partial<IWireTurn> = {}): ITurn {
  return keyed({
    agent: 'claude',
    prompt: 'do it',
    request: '',
    began: 1,
    first_event: -1,
    part_events: [],
    thoughts: '',
    stop_reason: '',
    cost: null,
    currency: '',
    usage: {},
    context_tokens: 0,
    context_size: 0,
    undone: false,
    checkpoint: null,
    changed_by_commands: [],
    notices: [],
    truncated: false,
    attachments: [],
    changed_files: [],
    plan: [],
    parts: [],
    runs_when: {},
    ...fields
  });
}

export function step(title: string, status = 'completed'): IStep {
  return { title, status, arguments: '', output: '', files: [] };
}

const EVENT = {
  timestamp: null,
  source: 'agent',
  message: '',
  clipped: false
} as const;

export function action(
  id: number,
  type = 'run',
  args: Record<string, unknown> = { command: `command ${id}` },
  more: Partial<IAction> = {}
): IAction {
  return { ...EVENT, id, action: type, args, ...more };
}

export function observation(
  id: number,
  cause: number | null,
  type = 'run',
  content = '',
  extras: Record<string, unknown> = { metadata: { exit_code: 0 } },
  more: Partial<IObservation> = {}
): IObservation {
  const outcome = outcomeOf(type);
  const result = { observation: type, outcome, content, extras, ...more };
  return { ...EVENT, id, cause, ...result };
}

/** Pending Action as the server lists it. */
export function waits(id: number, reason: string): IWaiting {
  return {
    id,
    agent: '',
    reason,
    diff: '',
    expires: 0,
    sandboxed: null,
    form: null
  };
}

/** Confirmation without details. */
export const UNDECIDED: IConfirmation = { ...UNKNOWN, asked: true };

export function card(
  asked: IAction | null,
  answer: IObservation | null = null,
  lost = false
): ICard {
  const id = asked?.id ?? answer?.id ?? 0;
  return {
    key: `g/${id}`,
    generation: 'g',
    id,
    action: asked,
    observation: answer,
    confirmation: null,
    lost
  };
}

const PAGE = 3;

/** Server with one kernel, whose log a test defines. */
export class FakeServer {
  generation = 'g';
  events: WireEvent[] = [];
  failure: Error | null = null;
  readonly asked: string[] = [];

  async history(kernelId: string, startId: number): Promise<IHistoryPage> {
    this.asked.push(`${kernelId} from ${startId}`);
    await Promise.resolve();
    if (this.failure) {
      throw this.failure;
    }
    const events = this.events.slice(startId, startId + PAGE);
    const nextId = events.length < PAGE ? null : startId + PAGE;
    const { generation } = this;
    return { generation, workspaceDir: '/work', events, nextId };
  }

  waiting: IWaiting[] = [];
  readonly decided: string[] = [];

  async confirmations(): Promise<readonly IWaiting[]> {
    await Promise.resolve();
    return this.waiting;
  }

  async decide(
    kernel: Pick<Kernel.IKernelConnection, 'id'>,
    { generation, id }: EventRef,
    { approve }: IVerdict
  ): Promise<void> {
    this.decided.push(`${kernel.id} ${generation} ${id} ${approve}`);
  }

  async look(): Promise<IProgress> {
    return { state: 'ended', text: '' };
  }

  readonly interrupted: string[] = [];

  async interrupt(
    kernel: Pick<Kernel.IKernelConnection, 'id'>,
    generation: string
  ): Promise<void> {
    this.interrupted.push(`${kernel.id} ${generation}`);
  }

  async load(kernelId: string): Promise<void> {
    this.asked.push(`${kernelId} load`);
  }

  async event(kernelId: string, id: number): Promise<WireEvent> {
    this.asked.push(`${kernelId} event ${id}`);
    return { ...this.events[id]!, clipped: false };
  }
}

/** Session of a notebook, as far as it is used. */
export class FakeSession {
  name = 'a.ipynb';
  path = 'a.ipynb';
  session: { kernel: { id: string } } | null;
  constructor(kernelId = 'k') {
    this.session = { kernel: { id: kernelId } };
  }

  readonly iopubMessage = new Signal<this, unknown>(this);
  readonly kernelChanged = new Signal<this, unknown>(this);
  readonly statusChanged = new Signal<this, string>(this);
  readonly connectionStatusChanged = new Signal<this, string>(this);
  readonly propertyChanged = new Signal<this, string>(this);

  publish(event: WireEvent, seq = event.id, generation = 'g'): void {
    this.iopubMessage.emit({
      header: { msg_type: 'oh_jupyter_event' },
      content: { generation, seq, event }
    });
  }

  decide(id: number, generation = 'g'): void {
    this.iopubMessage.emit({
      header: { msg_type: 'oh_jupyter_decision' },
      content: { generation, id, approved: true }
    });
  }

  execute(code: string): void {
    const header = { msg_type: 'execute_input' };
    this.iopubMessage.emit({ header, content: { code } });
    this.statusChanged.emit('idle');
  }
}

/** Storage of a browser in memory. */
export class FakeStorage {
  [name: string]: unknown;
  readonly items = new Map<string, string>();
  isFull = false;

  get length(): number {
    return this.items.size;
  }

  clear(): void {
    this.items.clear();
  }

  key(index: number): string | null {
    return [...this.items.keys()][index] ?? null;
  }

  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    if (this.isFull) {
      throw new Error('QuotaExceededError');
    }
    this.items.set(key, value);
  }

  removeItem(key: string): void {
    this.items.delete(key);
  }
}

/** Return numbers below a limit that are the same in every run. */
export function random(seed: number): (limit: number) => number {
  let state = seed;
  return limit => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * limit);
  };
}
