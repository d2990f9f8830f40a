import type { ISessionContext } from '@jupyterlab/apputils';
import { Token } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';

import type { OpenDocuments } from './documents/documents.js';
import type { IProgress } from './control/operations.js';
import type { IVerdict } from './events/api.js';
import type { EventRef, ICard, LogEntry } from './events/card.js';
import type { IEventMessage } from './events/wire.js';

/** State of the runtime in a notebook's kernel, as far as it is known. */
export type RuntimeState =
  'no-kernel' | 'unknown' | 'not-loaded' | 'ready' | 'failed';

/** Outcome of a decision: delivered, too late for the kernel, or undelivered. */
export type Decision = 'done' | 'gone' | 'failed';

/** Card that is open on the person's screen. */
export interface IOpenCard {
  /** Settles like `complete`. */
  readonly ready: Promise<void>;
  /** Allow the card to be clipped again. */
  close(): void;
}

/** Events of a kernel, or of the kernels of a fleet. */
export interface IActivity {
  /** Name of the notebook or fleet. */
  readonly name: string;
  readonly state: RuntimeState;
  /** Why reading the history failed, if `state` is `failed`. */
  readonly error: string;
  /** Directory of relative paths; "" while unknown. */
  readonly workspaceDir: string;
  /** Cards and restarts, oldest first; a new array after every change. */
  readonly entries: readonly LogEntry[];
  readonly changed: ISignal<this, void>;
  /** Cards that wait for a person, oldest first. */
  readonly waiting: readonly ICard[];
  /** Whether the panel shows these events on screen. */
  isShown: boolean;
  /** Emitted for each live event, after `entries` has it; not for history. */
  readonly arrived: ISignal<this, IEventMessage>;
  /** Fetch the events that did not arrive live. */
  refresh(): Promise<void>;
  /** Load a runtime into a kernel that has none, or throw with the reason. */
  load(): Promise<void>;
  /** Fetch a card in full, with its images; throw RuntimeGoneError if it is no longer available. */
  complete(card: ICard): Promise<void>;
  /** Keep a card in full while it is open. */
  open(card: ICard): IOpenCard;
  /** Approve or reject a pending Action; its card shows progress and errors meanwhile. */
  decide(card: ICard, verdict: IVerdict): Promise<Decision>;
  /** Wait until an Action's progress differs from `seen`, for a limited time. */
  look(card: EventRef, seen: IProgress | null): Promise<IProgress>;
  /** Interrupt a card that `findStoppable` returns; throw RuntimeGoneError if it has ended. */
  stop(card: ICard): Promise<void>;
  /** Kernel of a card among several; "" if there is only one. */
  readonly kernelOf: (card: ICard) => string;
}

/** Events of the kernel of one notebook or console. */
export interface IKernelEvents extends IActivity {
  readonly sessionContext: ISessionContext;
}

/** Fleet that runs on the server. */
export interface IFleet {
  readonly name: string;
  readonly size: number;
}

/** Runtime that a person and an agent share, as seen from JupyterLab. */
export interface IOhRuntime {
  /** Events of the current notebook or console, or null. */
  readonly current: IKernelEvents | null;
  readonly currentChanged: ISignal<IOhRuntime, IKernelEvents | null>;
  /** Events in the panel: `current`, or the selected fleet. */
  readonly shown: IActivity | null;
  readonly shownChanged: ISignal<IOhRuntime, IActivity | null>;
  /** Fleets that can be shown. */
  readonly fleets: readonly IFleet[];
  readonly fleetsChanged: ISignal<IOhRuntime, void>;
  /** Show a fleet by name; "" selects the current notebook or console. */
  choose(fleet: string): void;
  /** Emitted for each live event of any notebook or console. */
  readonly arrived: ISignal<IOhRuntime, IEventMessage>;
  /** Maximum number of cards per notebook. */
  limit: number;
}

export const IOhRuntime = new Token<IOhRuntime>(
  'oh-jupyter:IOhRuntime',
  'Live actions and observations of the current notebook’s kernel.'
);

/** Open documents that are kept in sync with their files. */
export type IOpenDocuments = OpenDocuments;

export const IOpenDocuments = new Token<IOpenDocuments>(
  'oh-jupyter:IOpenDocuments',
  'Open documents into which the changes of agents are merged.'
);
