import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection, type Kernel } from '@jupyterlab/services';

import { askOnControl } from './control.js';
import { NotLoadedError } from './errors.js';
import { parseProgress, type IProgress } from './progress.js';
import { isRecord, number, parseEvent, text, type WireEvent } from './wire.js';

/** One page of the log of the runtime that is alive in a kernel. */
export interface IHistoryPage {
  readonly generation: string;
  /** Where relative paths start. */
  readonly workspaceDir: string;
  readonly events: readonly WireEvent[];
  /** Where the next page starts; null if this was the last one. */
  readonly nextId: number | null;
}

/** An Action that a person has to decide on. */
export interface IWaiting {
  readonly id: number;
  /** Why it waits, in the kernel's words. */
  readonly reason: string;
  /** What an edit would change. */
  readonly diff: string;
  /** When it is rejected by itself, in milliseconds since the epoch. */
  readonly expires: number;
}

/** What a person has decided. */
export interface IVerdict {
  readonly approve: boolean;
  /** What the agent is told about a rejection. */
  readonly why?: string;
  /** Later Actions of its type that wait for the same reasons may begin, too. */
  readonly forSession?: boolean;
}

/** Seconds for which the kernel waits for news before it answers that there are none. */
const LOOK_SECONDS = 20;

const NOT_LOADED: ReadonlySet<number> = new Set([404, 424, 501]);

/** How many events to ask for at once. */
const PAGE_SIZE = 200;

/** The event endpoints of the server extension. */
export class EventsApi {
  /** @param settings - Of the Jupyter server that runs the extension. */
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  /**
   * Events of a kernel from an id on, at most `PAGE_SIZE` of them.
   *
   * @throws NotLoadedError where there is no runtime to ask.
   */
  async history(kernelId: string, startId: number): Promise<IHistoryPage> {
    const query = URLExt.objectToQueryString({
      start_id: startId,
      limit: PAGE_SIZE,
      if_loaded: true
    });
    const reply = await this._ask(kernelId, `events${query}`);
    if (
      !isRecord(reply) ||
      typeof reply.generation !== 'string' ||
      !Array.isArray(reply.events)
    ) {
      throw new Error('The server sent a history of an unknown form.');
    }
    const events = reply.events.map(parseEvent).filter(event => event !== null);
    const last = events.at(-1);
    const nextId =
      last && reply.events.length >= PAGE_SIZE ? last.id + 1 : null;
    const { generation } = reply;
    const workspaceDir = text(reply, 'workspace_dir');
    return { generation, workspaceDir, events, nextId };
  }

  /** Load a runtime into a kernel: the server does so where more is asked than events. */
  async load(kernelId: string): Promise<void> {
    await this._ask(kernelId, 'checkpoints');
  }

  /** One event in full length, with its images. */
  async event(kernelId: string, id: number): Promise<WireEvent> {
    const event = parseEvent(
      await this._ask(kernelId, `events/${id}?if_loaded=true`)
    );
    if (event === null) {
      throw new Error('The server sent an event of an unknown form.');
    }
    return event;
  }

  /** The Actions that wait for a person. */
  async confirmations(kernelId: string): Promise<readonly IWaiting[]> {
    const reply = await this._ask(kernelId, 'confirmations?if_loaded=true');
    if (!Array.isArray(reply)) {
      throw new Error('The server sent confirmations of an unknown form.');
    }
    return reply
      .filter(isRecord)
      .filter(({ id }) => Number.isSafeInteger(id))
      .map(each => ({
        id: each.id as number,
        reason: text(each, 'reason'),
        diff: text(each, 'diff'),
        expires: Date.now() + 1000 * number(each, 'seconds_left')
      }));
  }

  /**
   * Let a waiting Action begin, or reject it.
   *
   * The kernel is told directly, as by the cells that a person runs: what comes
   * over REST may come from the agent whose Action it is. The control channel
   * answers while cells run.
   *
   * @param generation - The life of the runtime in which the Action waits.
   * @throws NotLoadedError if it does not wait any more.
   */
  async decide(
    kernel: Kernel.IKernelConnection,
    generation: string,
    id: number,
    { approve, why = '', forSession = false }: IVerdict
  ): Promise<void> {
    const decision = { approve, why, for_session: forSession };
    const content = { op: 'confirm', generation, id, by: 'JupyterLab' };
    await askOnControl(kernel, { ...content, ...decision });
  }

  /** How an Action goes on, once that is not what was seen; or as it was, after a while. */
  async look(
    kernel: Kernel.IKernelConnection,
    generation: string,
    id: number,
    seen: IProgress | null
  ): Promise<IProgress> {
    const content = { op: 'peek', generation, id, seen, wait: LOOK_SECONDS };
    // A kernel that still says nothing ten seconds later has no runtime.
    const timeoutMs = 1000 * (LOOK_SECONDS + 10);
    return parseProgress(
      (await askOnControl(kernel, content, timeoutMs)).fields
    );
  }

  /** Interrupt the command that runs in the shell of a kernel. */
  async interrupt(
    kernel: Kernel.IKernelConnection,
    generation: string
  ): Promise<void> {
    await askOnControl(kernel, { op: 'interrupt', generation });
  }

  private _ask(kernelId: string, path: string): Promise<unknown> {
    return askRuntime(this._settings, kernelId, path);
  }

  private readonly _settings: ServerConnection.ISettings;
}

/** The address of a kernel in the server extension. */
export function kernelUrl(
  { baseUrl }: ServerConnection.ISettings,
  kernelId: string
): string {
  const id = encodeURIComponent(kernelId);
  return URLExt.join(baseUrl, 'oh_jupyter/kernels', id);
}

/**
 * What the server extension answers for a kernel.
 *
 * @throws NotLoadedError where there is no runtime to ask; another error with
 *   the reason, if it refuses.
 */
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
  const reply: unknown = await response.json().catch(() => null);
  const reason =
    (isRecord(reply) && (text(reply, 'detail') || text(reply, 'message'))) ||
    response.statusText;
  if (NOT_LOADED.has(response.status)) {
    throw new NotLoadedError(reason);
  }
  throw new Error(`${response.status} ${reason}`.trim());
}

/**
 * The JSON of such an answer; null if it is none.
 *
 * What is only looked for is asked of every kernel, with `if_loaded`: browser and
 * server would log an error for each kernel without a runtime.
 */
export async function askRuntime(
  settings: ServerConnection.ISettings,
  kernelId: string,
  path: string,
  init: RequestInit = {}
): Promise<unknown> {
  const response = await requestOfKernel(settings, kernelId, path, init);
  if (response.status === 204) {
    throw new NotLoadedError('oh_jupyter is not loaded in this kernel.');
  }
  return response.json().catch(() => null);
}
