import { UUID } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import type { IKernelEvents } from '../tokens.js';
import { itemKey, type IContextItem, type IPrompt } from './context.js';
import type { Drafts, IDraft } from './drafts.js';

/** What a person has written for the agents of one notebook, and what waits to be sent. */
export class PromptBox {
  /** @param drafts - Keeps the box through a reload of the page. */
  constructor(
    readonly events: IKernelEvents,
    private readonly _drafts: Drafts | null = null
  ) {
    this._path = this._currentPath;
    const draft = this._drafts?.load(this._path);
    if (draft) {
      this._fill(draft);
    }
    this.changed.connect(this._save, this);
  }

  readonly changed = new Signal<this, void>(this);

  get text(): string {
    return this._text;
  }
  set text(text: string) {
    this._text = text;
    this.changed.emit();
  }

  /** Agent for the next prompt; "" for the one used last. */
  get agent(): string {
    return this._agent;
  }
  set agent(name: string) {
    this._agent = name;
    // Another agent has other options.
    this._options = {};
    this.changed.emit();
  }

  get isNew(): boolean {
    return this._isNew;
  }
  set isNew(isNew: boolean) {
    this._isNew = isNew;
    this.changed.emit();
  }

  /** Options that the person has set since the last prompt. */
  get options(): Readonly<Record<string, string>> {
    return this._options;
  }

  get context(): readonly IContextItem[] {
    return this._context;
  }

  /** Prompts that follow the current one. */
  get queue(): readonly IPrompt[] {
    return this._queue;
  }

  /** Whether the queue waits for the person, because a turn was stopped or failed. */
  get isHeld(): boolean {
    return this._isHeld;
  }

  /** Prompt whose turn has not ended; null if there is none. */
  get sent(): IPrompt | null {
    return this._sent;
  }

  /** Why the last prompt failed; "" if it did not. */
  get failure(): string {
    return this._failure;
  }
  set failure(reason: string) {
    this._failure = reason;
    this.changed.emit();
  }

  setOption(id: string, value: string): void {
    this._options = { ...this._options, [id]: value };
    this.changed.emit();
  }

  add(...items: readonly IContextItem[]): void {
    const added = new Set(items.map(itemKey));
    const others = this._context.filter(each => !added.has(itemKey(each)));
    this._context = [...others, ...items];
    this.changed.emit();
  }

  remove(item: IContextItem): void {
    this._context = this._context.filter(each => each !== item);
    this.changed.emit();
  }

  /** Empty the box, and return its prompt; the agent is the default of the view. */
  take(agent: string): IPrompt {
    const prompt = {
      key: UUID.uuid4(),
      text: this._text,
      agent: agent || null,
      isNew: this._isNew,
      options: this._options,
      context: this._context
    };
    this._text = '';
    this._agent = '';
    this._isNew = false;
    this._options = {};
    this._context = [];
    this.changed.emit();
    return prompt;
  }

  /** Put a prompt back that did not reach its agent: before the queue if the box is in use. */
  restore(prompt: IPrompt): void {
    if (this._text === '') {
      this._text = prompt.text;
      this._options = prompt.options;
      this._isNew = prompt.isNew;
      this.add(...prompt.context);
    } else {
      // The kernel has seen the old key.
      this._queue = [{ ...prompt, key: UUID.uuid4() }, ...this._queue];
      this.hold();
    }
  }

  enqueue(prompt: IPrompt): void {
    this._queue = [...this._queue, prompt];
    this.changed.emit();
  }

  removeQueued(prompt: IPrompt): void {
    this._queue = this._queue.filter(each => each !== prompt);
    this.changed.emit();
  }

  /** Remove queued prompts that have become turns, such as from another window. */
  removeKnown(keys: ReadonlySet<string>): void {
    if (this._queue.some(({ key }) => keys.has(key))) {
      this._queue = this._queue.filter(({ key }) => !keys.has(key));
      this.changed.emit();
    }
  }

  /** Let the queue wait for the person. */
  hold(): void {
    this._isHeld = true;
    this.changed.emit();
  }

  /** Return the next prompt of the queue and remove it; undefined if it waits for the person. */
  next(): IPrompt | undefined {
    const [prompt] = this._isHeld ? [] : this._queue;
    if (prompt) {
      this.removeQueued(prompt);
    }
    return prompt;
  }

  begin(prompt: IPrompt): void {
    this._sent = prompt;
    this._failure = '';
    this._isHeld = false;
    this.changed.emit();
  }

  /** Note the end of a turn. Without success, the queue waits for the person. */
  end(hasSucceeded: boolean, failure = ''): void {
    this._sent = null;
    this._failure = failure;
    this._isHeld = !hasSucceeded;
    this.changed.emit();
  }

  private get _currentPath(): string {
    return this.events.sessionContext.path;
  }

  private _fill({ queue, sent, ...draft }: IDraft): void {
    this._text = draft.text;
    this._agent = draft.agent;
    this._isNew = draft.isNew;
    this._options = draft.options;
    this._context = draft.context;
    this._isHeld = draft.isHeld;
    // The kernel knows whether a prompt arrived that was sent before the reload.
    this._queue = sent ? [sent, ...queue] : queue;
  }

  private _save(): void {
    const path = this._currentPath;
    if (path !== this._path) {
      this._drafts?.save(this._path, null);
      this._path = path;
    }
    this._drafts?.save(path, {
      text: this._text,
      agent: this._agent,
      isNew: this._isNew,
      options: this._options,
      context: this._context,
      queue: this._queue,
      isHeld: this._isHeld,
      sent: this._sent
    });
  }

  private _path: string;
  private _text = '';
  private _agent = '';
  private _isNew = false;
  private _isHeld = false;
  private _failure = '';
  private _sent: IPrompt | null = null;
  private _options: Readonly<Record<string, string>> = {};
  private _context: readonly IContextItem[] = [];
  private _queue: readonly IPrompt[] = [];
}
