import type { Decision } from '../tokens.js';
import type { EventsApi, IVerdict, IWaiting } from './api.js';
import {
  UNKNOWN,
  type EventRef,
  type ICard,
  type IConfirmation
} from './card.js';
import { NotLoadedError, RuntimeGoneError, reasonOf } from './errors.js';
import type { Generation } from './generation.js';
import type { EventLog } from './log.js';
import { SerialTask } from './serial.js';
import type { IAction } from './wire.js';

/** An Action that is still running after so many milliseconds may wait for a person. */
const GRACE_MS = 400;

type Api = Pick<EventsApi, 'confirmations'>;

interface IContext {
  readonly kernelId: () => string | null;
  /** Send a decision on an Action. */
  readonly decide: (ref: EventRef, verdict: IVerdict) => Promise<void>;
  /** Called when a card starts or stops waiting. */
  readonly onChanged: () => void;
  /** Called when the log lacks a waiting Action. */
  readonly onUnknown: () => void;
}

/** Keeps pending cards in line with the kernel's list; events do not show whether an Action still waits. */
export class Confirmations {
  constructor(
    private readonly _api: Api,
    private readonly _log: EventLog,
    private readonly _context: IContext
  ) {}

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  /** Handle an Action that arrived live. */
  onAction(generation: string, action: IAction): void {
    const card = { generation, id: action.id };
    if (action.source === 'user') {
      return;
    }
    if (isAwaiting(action)) {
      this._put(card, UNKNOWN);
      void this.refresh();
    } else if (action.args.confirmation_state === undefined) {
      // This type of Action does not announce that it waits.
      this._recent.push(card);
      this._timer ??= setTimeout(() => this._checkRecent(), GRACE_MS);
    }
  }

  /** Handle a decision made here or in another tab. */
  onDecided(ref: EventRef): void {
    const card = this._find(ref);
    if (card) {
      this._settle(card);
    }
  }

  /** Fetch the list of waiting Actions. */
  async refresh(): Promise<void> {
    await this._list.run();
  }

  /** Fetch the list, unless the kernel is known to have no runtime. */
  async look(): Promise<void> {
    if (this._context.kernelId() !== this._kernelWithout) {
      await (this._list.running ?? this.refresh());
    }
  }

  /** Send a decision to the kernel. */
  async decide(card: ICard, verdict: IVerdict): Promise<Decision> {
    const known = this._find(card);
    if (!known?.confirmation || known.confirmation.busy) {
      return 'gone';
    }
    const waits = known.confirmation;
    this._put(card, { ...waits, busy: true, error: '' });
    try {
      // The generation guards against a restart, after which the id is another Action's.
      await this._context.decide(card, verdict);
    } catch (error) {
      if (
        error instanceof NotLoadedError ||
        error instanceof RuntimeGoneError
      ) {
        this._settle(card);
        return 'gone';
      }
      // The list may have arrived meanwhile.
      const current = this._find(card)?.confirmation ?? waits;
      this._put(card, { ...current, busy: false, error: reasonOf(error) });
      return 'failed';
    }
    this._settle(card);
    return 'done';
  }

  private async _ask(): Promise<void> {
    const kernelId = this._context.kernelId();
    if (kernelId === null || this._isDisposed) {
      return;
    }
    // The response may miss Actions that arrive during the request.
    const before = this._log.current?.cards ?? [];
    const waiting = before.filter(({ confirmation }) => confirmation !== null);
    const list = await this._fetch(kernelId);
    if (this._isDisposed || kernelId !== this._context.kernelId()) {
      return;
    }
    if (list === null) {
      before
        .filter(card => mayWait(card) || card.confirmation?.asked === false)
        .forEach(card => this._markAsked(card));
    } else {
      this._apply(list, waiting);
    }
    this._context.onChanged();
  }

  /** Fetch the list; null if the server cannot provide it. */
  private async _fetch(kernelId: string): Promise<readonly IWaiting[] | null> {
    try {
      return await this._api.confirmations(kernelId);
    } catch (error) {
      if (!(error instanceof NotLoadedError)) {
        return null;
      }
      this._kernelWithout = kernelId;
      return [];
    }
  }

  private _apply(list: readonly IWaiting[], before: readonly ICard[]): void {
    const generation: Generation | null = this._log.current;
    for (const { id, ...waits } of list) {
      const card = generation?.find(id);
      if (card) {
        this._set(card, {
          ...(card.confirmation ?? UNKNOWN),
          ...waits,
          asked: true
        });
      }
    }
    const ids = new Set(list.map(({ id }) => id));
    before
      .filter(({ id }) => !ids.has(id))
      .forEach(card => this._log.confirm(card, null));
    if (list.some(({ id }) => !generation?.find(id))) {
      this._context.onUnknown();
    }
  }

  /** Note that the server had no list; a decision may have failed meanwhile. */
  private _markAsked(card: ICard): void {
    const current = this._find(card)?.confirmation ?? UNKNOWN;
    this._set(card, { ...current, asked: true });
  }

  private _checkRecent(): void {
    this._timer = undefined;
    const recent = this._recent.splice(0);
    if (recent.some(card => this._find(card)?.observation === null)) {
      void this.refresh();
    }
  }

  private _find({ generation, id }: EventRef): ICard | undefined {
    const current = this._log.current;
    return current?.id === generation ? current.find(id) : undefined;
  }

  private _settle(card: ICard): void {
    // A list requested earlier must not restore it.
    this._settled.add(card.key);
    this._log.confirm(card, null);
    this._context.onChanged();
  }

  private _set(card: ICard, confirmation: IConfirmation): void {
    if (!this._settled.has(card.key)) {
      this._log.confirm(card, confirmation);
    }
  }

  private _put(card: EventRef, confirmation: IConfirmation): void {
    this._log.confirm(card, confirmation);
    this._context.onChanged();
  }

  private readonly _list = new SerialTask(() => this._ask());
  private readonly _settled = new Set<string>();
  private readonly _recent: EventRef[] = [];
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** Kernel that was found to have no runtime. */
  private _kernelWithout: string | null = null;
  private _isDisposed = false;
}

function isAwaiting(action: IAction | null): boolean {
  return action?.args.confirmation_state === 'awaiting_confirmation';
}

/** Return whether a card's event asks for a decision, and nothing contradicts it. */
function mayWait({ action, observation, confirmation }: ICard): boolean {
  return isAwaiting(action) && observation === null && confirmation === null;
}
