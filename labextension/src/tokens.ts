import type { ISessionContext } from '@jupyterlab/apputils';
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { IVerdict } from './events/api.js';
import type { ICard, LogEntry } from './events/card.js';
import type { IProgress } from './events/progress.js';
import type { IEventMessage } from './events/wire.js';

/** What is known about the runtime in a notebook's kernel. */
export type RuntimeState =
  'no-kernel' | 'unknown' | 'not-loaded' | 'ready' | 'failed';

/** What came of a decision: told to the kernel, too late for it, or not told. */
export type Decision = 'done' | 'gone' | 'failed';

/** A card that a person has before their eyes. */
export interface IOpenCard {
  /** As for `complete`. */
  readonly ready: Promise<void>;
  /** It may be shortened again. */
  close(): void;
}

/** The events of a kernel, or of the kernels of a fleet. */
export interface IActivity {
  /** What people call the notebook, or the fleet. */
  readonly name: string;
  readonly state: RuntimeState;
  /** Why the history could not be read, where `state` is `failed`. */
  readonly error: string;
  /** Where relative paths start, "" while that is not known. */
  readonly workspaceDir: string;
  /** Cards and fresh starts, oldest first; a new array whenever one changed. */
  readonly entries: readonly LogEntry[];
  readonly changed: ISignal<this, void>;
  /** The cards that wait for a person, the one that waits longest first. */
  readonly waiting: readonly ICard[];
  /** Whether a person has them before their eyes, in the panel. */
  isShown: boolean;
  /** Emitted for each event that comes live, once `entries` has it; not for history. */
  readonly arrived: ISignal<this, IEventMessage>;
  /** Ask the server for the events that did not come live. */
  refresh(): Promise<void>;
  /**
   * Load a runtime into the kernel, where there is none.
   *
   * @throws Error with the reason, if that cannot be.
   */
  load(): Promise<void>;
  /**
   * Ask the server for a card in full length, with its images.
   *
   * @throws RuntimeGoneError if it cannot be had any more; another error with
   *   the reason, if the server could not be asked.
   */
  complete(card: ICard): Promise<void>;
  /** Have a card in full length, as long as it is open. */
  open(card: ICard): IOpenCard;
  /**
   * Let a waiting Action begin, or reject it.
   *
   * Its card tells meanwhile that this is under way, and why it failed.
   */
  decide(card: ICard, verdict: IVerdict): Promise<Decision>;
  /**
   * How an Action goes on, once that is not what was seen; or as it was, after a while.
   *
   * @throws An error if the kernel cannot be asked.
   */
  look(
    card: Pick<ICard, 'generation' | 'id'>,
    seen: IProgress | null
  ): Promise<IProgress>;
  /**
   * Interrupt what a card is doing, see `findStoppable`.
   *
   * @throws RuntimeGoneError if it does nothing any more; another error with
   *   the reason, if the kernel could not be told.
   */
  stop(card: ICard): Promise<void>;
  /** Which of several kernels a card is of; "" where there is one only. */
  readonly kernelOf: (card: ICard) => string;
}

/** The events of one notebook's or console's kernel. */
export interface IKernelEvents extends IActivity {
  /** Of the notebook or console. */
  readonly sessionContext: ISessionContext;
}

/** A fleet that runs on the server. */
export interface IFleet {
  readonly name: string;
  /** How many kernels it has now. */
  readonly size: number;
}

/** The runtime that a person and an agent share, seen from JupyterLab. */
export interface IOhRuntime {
  /** Events of the notebook or console in front; null if there is none. */
  readonly current: IKernelEvents | null;
  readonly currentChanged: ISignal<IOhRuntime, IKernelEvents | null>;
  /** What the panel shows: `current`, or the fleet that was chosen. */
  readonly shown: IActivity | null;
  readonly shownChanged: ISignal<IOhRuntime, IActivity | null>;
  /** The fleets that can be shown. */
  readonly fleets: readonly IFleet[];
  readonly fleetsChanged: ISignal<IOhRuntime, void>;
  /** Show a fleet by its name; "" for the notebook or console in front. */
  choose(fleet: string): void;
  /** Emitted for each event that comes live, of whichever notebook or console. */
  readonly arrived: ISignal<IOhRuntime, IEventMessage>;
  /** How many cards to keep for each notebook. */
  limit: number;
}

export const IOhRuntime = new Token<IOhRuntime>(
  'oh-jupyter:IOhRuntime',
  'Actions and observations of the kernel of the notebook in front, live.'
);
