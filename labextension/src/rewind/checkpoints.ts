import type { ServerConnection } from '@jupyterlab/services';

import { askRuntime } from '../events/api.js';
import { isRecord, text } from '../events/wire.js';

/** State that the workspace can return to. */
export interface ICheckpoint {
  readonly id: number;
  /** Seconds since the epoch. */
  readonly time: number;
  readonly kind: string;
  /** Prompt, or first action of the turn. */
  readonly label: string;
  /** Who acted after it. */
  readonly who: string;
  /** Files that the turn changed, cells that it ran, and variables that it changed. */
  readonly counts: {
    readonly files: number;
    readonly cells: number;
    readonly variables: number;
  };
}

/** Checkpoints of a kernel's workspace. */
export interface ICheckpoints {
  readonly entries: readonly ICheckpoint[];
  /** Why there are no new ones; "" if there are. */
  readonly problem: string;
}

/** Effect of a rewind on a variable of the kernel. */
export interface IVariableChange {
  readonly name: string;
  readonly outcome: string;
  readonly type: string;
  /** In bytes. */
  readonly size: number;
  /** Why it stays; "" if it does not. */
  readonly reason: string;
}

/** Effect of a rewind on a file. */
export interface IPathChange {
  /** Relative to the workspace. */
  readonly path: string;
  readonly kind: string;
}

/** Effect of a rewind. */
export interface IRewindPlan {
  readonly changes: readonly IPathChange[];
  /** Unchanged paths with reasons. */
  readonly kept: readonly (readonly [string, string])[];
  readonly variables: readonly IVariableChange[];
  /** Other limits, as sentences. */
  readonly notes: readonly string[];
}

/** Client of the checkpoint endpoints of the server extension. */
export class CheckpointsApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  async list(kernelId: string): Promise<ICheckpoints> {
    return readCheckpoints(
      await askRuntime(this._settings, kernelId, 'checkpoints')
    );
  }

  /** Undo the turns since a checkpoint, or preview that. */
  async rewind(
    kernelId: string,
    id: number,
    options: { everything: boolean; preview: boolean }
  ): Promise<IRewindPlan> {
    const body = JSON.stringify({ id, source: 'user', ...options });
    const init = { method: 'POST', body };
    return readPlan(await askRuntime(this._settings, kernelId, 'rewind', init));
  }
}

export function readCheckpoints(reply: unknown): ICheckpoints {
  if (!isRecord(reply) || !Array.isArray(reply.checkpoints)) {
    throw new Error('The server sent unexpected checkpoints.');
  }
  const entries = reply.checkpoints
    .filter(isRecord)
    .filter(({ id }) => Number.isSafeInteger(id))
    .map(each => ({
      id: each.id as number,
      time: typeof each.time === 'number' ? each.time : 0,
      kind: text(each, 'kind'),
      label: text(each, 'label'),
      who: text(each, 'who'),
      counts: {
        files: lengthOf(each.files),
        cells: typeof each.cells === 'number' ? each.cells : 0,
        variables: lengthOf(each.variables)
      }
    }));
  return { entries: entries.reverse(), problem: text(reply, 'problem') };
}

function lengthOf(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

export function readPlan(reply: unknown): IRewindPlan {
  if (!isRecord(reply) || !Array.isArray(reply.changes)) {
    throw new Error('The server sent an unexpected plan.');
  }
  const notes = Array.isArray(reply.notes) ? reply.notes : [];
  const variables = Array.isArray(reply.variables) ? reply.variables : [];
  return {
    changes: reply.changes
      .filter(isRecord)
      .map(each => ({ path: text(each, 'path'), kind: text(each, 'kind') })),
    kept: Object.entries(isRecord(reply.kept) ? reply.kept : {}).map(
      ([path, reason]) => [path, String(reason)] as const
    ),
    variables: variables.filter(isRecord).map(each => ({
      name: text(each, 'name'),
      outcome: text(each, 'outcome'),
      type: text(each, 'type'),
      size: typeof each.size === 'number' ? each.size : 0,
      reason: text(each, 'reason')
    })),
    notes: notes.map(String)
  };
}

/** Return the default choice: the last turn. */
export function proposed(
  entries: readonly ICheckpoint[]
): ICheckpoint | undefined {
  return entries.find(({ kind }) => kind === 'turn') ?? entries[0];
}
