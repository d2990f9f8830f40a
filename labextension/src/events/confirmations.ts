import type { Decision } from '../tokens.js';
import type { EventsApi, IVerdict, IWaiting } from './api.js';
import type { ICard, IConfirmation } from './card.js';
import { NotLoadedError, RuntimeGoneError, reasonOf } from './errors.js';
import type { Generation } from './generation.js';
import type { EventLog } from './log.js';
import type { IAction } from './wire.js';

/** Milliseconds after which an Action that may have ended by then may as well wait. */
const ANSWER_GRACE_MS = 400;

const UNKNOWN: IConfirmation = {
  asked: false,
  reason: '',
  diff: '',
  expires: null,
  busy: false,
  error: ''
};

/** What is asked of the server. */
type Api = Pick<EventsApi, 'confirmations'>;

interface ISurroundings {
  readonly kernelId: () => string | null;
  /** Tell the kernel what a person has decided on an Action of a generation. */
  readonly decide: (place: Place, verdict: IVerdict) => Promise<void>;
  /** Called when a card waits, or does not wait any more. */
  readonly onChanged: () => void;
  /** Called when something waits of which the log has no card. */
  readonly onUnknown: () => void;
}

/**
 * Keeps the cards that wait for a person what they are in the kernel.
 *
 * The event of an Action is recorded once, before anybody has decided: whether
 * it still waits, only the kernel's list tells.
 */
export class Confirmations {
  /**
   * @param api - Where to ask what waits.
   * @param log - Whose cards wait.
   * @param surroundings - The kernel, and who is told.
   */
  constructor(api: Api, log: EventLog, surroundings: ISurroundings) {
    this._api = api;
    this._log = log;
    this._surroundings = surroundings;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
  }

  /** Take note of an Action that came live. */
  onAction(generation: string, action: IAction): void {
    const card = { generation, id: action.id };
    if (action.source === 'user') {
      return;
    }
    if (isAwaiting(action)) {
      this._put(card, UNKNOWN);
      void this.refresh();
    } else if (action.args.confirmation_state === undefined) {
      // Actions of its type never say that they wait.
      this._recent.push(card);
      this._timer ??= setTimeout(() => this._askOfRecent(), ANSWER_GRACE_MS);
    }
  }

  /** Take note of a decision that was made here or in another tab. */
  onDecided(place: Place): void {
    const card = this._find(place);
    if (card) {
      this._settle(card);
    }
  }

  /** Ask the server what waits; one request at a time, and once more if asked meanwhile. */
  async refresh(): Promise<void> {
    this._stale = true;
    this._refreshing ??= this._ask().finally(() => {
      this._refreshing = null;
    });
    await this._refreshing;
  }

  /** Ask the server, but not again about a kernel without a runtime. */
  async look(): Promise<void> {
    if (this._surroundings.kernelId() !== this._absentIn) {
      await (this._refreshing ?? this.refresh());
    }
  }

  /** Tell the kernel what a person has decided. */
  async decide(card: ICard, verdict: IVerdict): Promise<Decision> {
    const known = this._find(card);
    if (!known?.confirmation || known.confirmation.busy) {
      return 'gone';
    }
    const waits = known.confirmation;
    this._put(card, { ...waits, busy: true, error: '' });
    try {
      // After a restart that went unseen, the same id belongs to another Action:
      // the generation tells.
      await this._surroundings.decide(card, verdict);
    } catch (error) {
      if (
        error instanceof NotLoadedError ||
        error instanceof RuntimeGoneError
      ) {
        this._settle(card);
        return 'gone';
      }
      this._put(card, { ...waits, busy: false, error: reasonOf(error) });
      return 'failed';
    }
    this._settle(card);
    return 'done';
  }

  private async _ask(): Promise<void> {
    while (this._stale && !this._isDisposed) {
      this._stale = false;
      const kernelId = this._surroundings.kernelId();
      if (kernelId === null) {
        return;
      }
      // What comes while the server is asked is not told of by its answer.
      const before = this._log.current?.cards ?? [];
      const waiting = before.filter(
        ({ confirmation }) => confirmation !== null
      );
      const list = await this._list(kernelId);
      if (this._isDisposed || kernelId !== this._surroundings.kernelId()) {
        continue;
      }
      if (list === null) {
        before
          .filter(card => mayWait(card) || card.confirmation?.asked === false)
          .forEach(card => this._set(card, { ...UNKNOWN, asked: true }));
      } else {
        this._apply(list, waiting);
      }
      this._surroundings.onChanged();
    }
  }

  /** What waits in a kernel; null if the server cannot tell. */
  private async _list(kernelId: string): Promise<readonly IWaiting[] | null> {
    try {
      return await this._api.confirmations(kernelId);
    } catch (error) {
      if (!(error instanceof NotLoadedError)) {
        return null;
      }
      this._absentIn = kernelId;
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
      this._surroundings.onUnknown();
    }
  }

  private _askOfRecent(): void {
    this._timer = undefined;
    const recent = this._recent.splice(0);
    if (recent.some(card => this._find(card)?.observation === null)) {
      void this.refresh();
    }
  }

  private _find({ generation, id }: Place): ICard | undefined {
    const current = this._log.current;
    return current?.id === generation ? current.find(id) : undefined;
  }

  private _settle(card: ICard): void {
    // A list that was asked for before must not bring it back.
    this._settled.add(card.key);
    this._log.confirm(card, null);
    this._surroundings.onChanged();
  }

  private _set(card: ICard, confirmation: IConfirmation): void {
    if (!this._settled.has(card.key)) {
      this._log.confirm(card, confirmation);
    }
  }

  private _put(card: Place, confirmation: IConfirmation): void {
    this._log.confirm(card, confirmation);
    this._surroundings.onChanged();
  }

  private readonly _api: Api;
  private readonly _log: EventLog;
  private readonly _surroundings: ISurroundings;
  private readonly _settled = new Set<string>();
  private readonly _recent: Place[] = [];
  private _timer: ReturnType<typeof setTimeout> | undefined;
  /** The kernel in which there was no runtime to ask. */
  private _absentIn: string | null = null;
  private _stale = false;
  private _refreshing: Promise<void> | null = null;
  private _isDisposed = false;
}

export type Place = Pick<ICard, 'generation' | 'id'>;

function isAwaiting(action: IAction | null): boolean {
  return action?.args.confirmation_state === 'awaiting_confirmation';
}

/** Whether a card's own event says that it had to wait, and nobody says otherwise. */
function mayWait({ action, observation, confirmation }: ICard): boolean {
  return isAwaiting(action) && observation === null && confirmation === null;
}
