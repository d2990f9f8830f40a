import type { ServerConnection } from '@jupyterlab/services';

import { askRuntime } from '../events/api.js';
import { isRecord, text } from '../events/wire.js';

/** A moment that the workspace can go back to. */
export interface ICheckpoint {
  readonly id: number;
  /** Seconds since the epoch. */
  readonly time: number;
  readonly kind: string;
  /** The prompt, or the first action of the turn. */
  readonly label: string;
  /** Who acted since then. */
  readonly who: string;
}

/** The checkpoints of a kernel's workspace. */
export interface ICheckpoints {
  /** The newest first. */
  readonly entries: readonly ICheckpoint[];
  /** Why there are no new ones; empty if there are. */
  readonly problem: string;
}

/** What going back would do, or has done. */
export interface IRewindPlan {
  readonly changes: readonly { readonly path: string; readonly kind: string }[];
  /** Paths that stay as they are, each with the reason. */
  readonly kept: readonly (readonly [string, string])[];
  /** What else does not come back, each a sentence. */
  readonly notes: readonly string[];
}

/** The checkpoint endpoints of the server extension. */
export class CheckpointsApi {
  /** @param settings - Of the Jupyter server that runs the extension. */
  constructor(settings: ServerConnection.ISettings) {
    this._settings = settings;
  }

  /** The checkpoints of a kernel's workspace. */
  async list(kernelId: string): Promise<ICheckpoints> {
    return readCheckpoints(
      await askRuntime(this._settings, kernelId, 'checkpoints')
    );
  }

  /** Undo the turns since a checkpoint, or tell what that would do. */
  async rewind(
    kernelId: string,
    id: number,
    options: { everything: boolean; preview: boolean }
  ): Promise<IRewindPlan> {
    const body = JSON.stringify({ id, source: 'user', ...options });
    const init = { method: 'POST', body };
    return readPlan(await askRuntime(this._settings, kernelId, 'rewind', init));
  }

  private readonly _settings: ServerConnection.ISettings;
}

/** @throws Error if the server sent something else. */
export function readCheckpoints(reply: unknown): ICheckpoints {
  if (!isRecord(reply) || !Array.isArray(reply.checkpoints)) {
    throw new Error('The server sent checkpoints of an unknown form.');
  }
  const entries = reply.checkpoints
    .filter(isRecord)
    .filter(({ id }) => Number.isSafeInteger(id))
    .map(each => ({
      id: each.id as number,
      time: typeof each.time === 'number' ? each.time : 0,
      kind: text(each, 'kind'),
      label: text(each, 'label'),
      who: text(each, 'who')
    }));
  return { entries: entries.reverse(), problem: text(reply, 'problem') };
}

/** @throws Error if the server sent something else. */
export function readPlan(reply: unknown): IRewindPlan {
  if (!isRecord(reply) || !Array.isArray(reply.changes)) {
    throw new Error('The server sent a plan of an unknown form.');
  }
  const notes = Array.isArray(reply.notes) ? reply.notes : [];
  return {
    changes: reply.changes
      .filter(isRecord)
      .map(each => ({ path: text(each, 'path'), kind: text(each, 'kind') })),
    kept: Object.entries(isRecord(reply.kept) ? reply.kept : {}).map(
      ([path, reason]) => [path, String(reason)] as const
    ),
    notes: notes.map(String)
  };
}

/** The turn that is undone unless another one is chosen: the last one. */
export function proposed(
  entries: readonly ICheckpoint[]
): ICheckpoint | undefined {
  return entries.find(({ kind }) => kind === 'turn') ?? entries[0];
}
