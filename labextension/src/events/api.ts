import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection, type Kernel } from '@jupyterlab/services';

import type {
  IEventPage,
  IProgress,
  IQuestion
} from '../control/operations.js';
import { askKernel } from '../control/request.js';
import type { EventRef } from './card.js';
import { NotLoadedError } from './errors.js';
import { formOf, type IField, type Input } from './form.js';
import { isRecord, parseEvent, text, type WireEvent } from './wire.js';

/** Page of the event log of the current runtime of a kernel. */
export interface IHistoryPage {
  readonly generation: string;
  /** Directory of relative paths. */
  readonly workspaceDir: string;
  readonly events: readonly WireEvent[];
  /** Start of the next page; null after the last one. */
  readonly nextId: number | null;
}

/** Action that waits for a person's decision. */
export interface IWaiting {
  readonly id: number;
  /** Name of the agent that asks; "" if unknown. */
  readonly agent: string;
  /** Reason, in the kernel's words. */
  readonly reason: string;
  /** Diff of a pending edit. */
  readonly diff: string;
  /** Time of automatic rejection, in milliseconds since the epoch. */
  readonly expires: number;
  /** Whether it would run in a sandbox; null where nobody expects one. */
  readonly sandboxed: boolean | null;
  /** Fields of an agent's question; null for an Action that waits for approval. */
  readonly form: readonly IField[] | null;
}

/** Decision of a person. */
export interface IVerdict {
  readonly approve: boolean;
  /** Reason that the agent reads with a rejection. */
  readonly why?: string;
  /** Cover later actions of the type with the same reasons. */
  readonly forSession?: boolean;
  /** The same, in all later sessions in the workspace. */
  readonly forWorkspace?: boolean;
  /** Answers to an agent's question by field. */
  readonly values?: Readonly<Record<string, Input>>;
}

/** How long the kernel waits for progress before it replies without any. */
const LOOK_SECONDS = 20;

const NOT_LOADED: ReadonlySet<number> = new Set([404, 424, 501]);

const PAGE_SIZE = 200;

/** Client of the event endpoints of the server extension. */
export class EventsApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** Fetch a page of events of a kernel; throw NotLoadedError without a runtime. */
  async history(kernelId: string, startId: number): Promise<IHistoryPage> {
    const query = URLExt.objectToQueryString({
      start_id: startId,
      limit: PAGE_SIZE,
      if_loaded: true
    });
    const page = await this._ask<IEventPage & { generation: string }>(
      kernelId,
      `events${query}`
    );
    const events = page.events.map(parseEvent).filter(event => event !== null);
    const last = events.at(-1);
    const nextId = last && page.events.length >= PAGE_SIZE ? last.id + 1 : null;
    const { generation, workspace_dir: workspaceDir } = page;
    return { generation, workspaceDir, events, nextId };
  }

  /** Load a runtime: the server does that for every request but those for events. */
  async load(kernelId: string): Promise<void> {
    await this._ask(kernelId, 'checkpoints');
  }

  /** Fetch one event in full, with its images. */
  async event(kernelId: string, id: number): Promise<WireEvent> {
    const event = parseEvent(
      await this._ask(kernelId, `events/${id}?if_loaded=true`)
    );
    if (event === null) {
      throw new Error('The server sent an unexpected event.');
    }
    return event;
  }

  async confirmations(kernelId: string): Promise<readonly IWaiting[]> {
    const questions = await this._ask<readonly IQuestion[]>(
      kernelId,
      'confirmations?if_loaded=true'
    );
    return questions.map(each => ({
      id: each.id,
      agent: each.agent,
      reason: each.reason,
      diff: each.diff,
      expires: Date.now() + 1000 * each.seconds_left,
      sandboxed: each.sandboxed,
      form: formOf(each)
    }));
  }

  /**
   * Approve or reject a pending Action; throw NotLoadedError if it no longer waits.
   *
   * Decisions use the control channel, because a REST request may come from the agent that asked.
   */
  async decide(
    kernel: Kernel.IKernelConnection,
    { generation, id }: EventRef,
    verdict: IVerdict
  ): Promise<void> {
    const { approve, why = '', values = {} } = verdict;
    await askKernel(kernel, {
      op: 'confirm',
      generation,
      id,
      by: 'JupyterLab',
      approve,
      reason: why,
      values,
      for_session: verdict.forSession === true,
      for_workspace: verdict.forWorkspace === true
    });
  }

  /** Wait until an Action's progress differs from `seen`, for a limited time. */
  async look(
    kernel: Kernel.IKernelConnection,
    { generation, id }: EventRef,
    seen: IProgress | null
  ): Promise<IProgress> {
    const known = seen && { ...seen };
    return askKernel(
      kernel,
      { op: 'peek', generation, id, seen: known, wait: LOOK_SECONDS },
      // After ten more seconds of silence the kernel has no runtime.
      1000 * (LOOK_SECONDS + 10)
    );
  }

  /** Interrupt the command that runs in a kernel's shell. */
  async interrupt(
    kernel: Kernel.IKernelConnection,
    generation: string
  ): Promise<void> {
    await askKernel(kernel, { op: 'interrupt', generation });
  }

  private _ask<T>(kernelId: string, path: string): Promise<T> {
    return askRuntime(this._settings, kernelId, path);
  }
}

/** Return the URL of a kernel in the server extension. */
export function kernelUrl(
  { baseUrl }: ServerConnection.ISettings,
  kernelId: string
): string {
  const id = encodeURIComponent(kernelId);
  return URLExt.join(baseUrl, 'oh_jupyter/kernels', id);
}

/** Send a request about a kernel to the server; throw NotLoadedError without a runtime. */
export async function requestOfKernel(
  settings: ServerConnection.ISettings,
  kernelId: string,
  path: string,
  init: RequestInit = {}
): Promise<Response> {
  const response = await ServerConnection.makeRequest(
    `${kernelUrl(settings, kernelId)}/${path}`,
    init,
    settings
  );
  if (response.ok) {
    return response;
  }
  const body: unknown = await response.json().catch(() => null);
  const reason =
    (isRecord(body) && (text(body, 'detail') || text(body, 'message'))) ||
    response.statusText;
  if (NOT_LOADED.has(response.status)) {
    throw new NotLoadedError(reason);
  }
  throw new Error(`${response.status} ${reason}`.trim());
}

/**
 * Return the JSON of such a response.
 *
 * Requests to every kernel should carry `if_loaded`; otherwise browser and server log an error for
 * each kernel without a runtime.
 */
export async function askRuntime<T>(
  settings: ServerConnection.ISettings,
  kernelId: string,
  path: string,
  init: RequestInit = {}
): Promise<T> {
  const response = await requestOfKernel(settings, kernelId, path, init);
  if (response.status === 204) {
    throw new NotLoadedError('oh_jupyter is not loaded in this kernel.');
  }
  return (await response.json()) as T;
}
