import type { ServerConnection } from '@jupyterlab/services';

import type {
  ICheckpoint,
  ICheckpointList,
  IRewindPlan
} from '../control/operations.js';
import { askRuntime } from '../events/api.js';

/** Client of the checkpoint endpoints of the server extension. */
export class CheckpointsApi {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  /** List the checkpoints, newest first. */
  async list(kernelId: string): Promise<ICheckpointList> {
    const list = await askRuntime<ICheckpointList>(
      this._settings,
      kernelId,
      'checkpoints'
    );
    return { ...list, checkpoints: [...list.checkpoints].reverse() };
  }

  /** Undo the turns since a checkpoint, or preview that. */
  async rewind(
    kernelId: string,
    id: number,
    options: { everything: boolean; preview: boolean }
  ): Promise<IRewindPlan> {
    const body = JSON.stringify({ id, source: 'user', ...options });
    const init = { method: 'POST', body };
    return askRuntime(this._settings, kernelId, 'rewind', init);
  }
}

/** Return the default choice: the last turn. */
export function proposed(
  entries: readonly ICheckpoint[]
): ICheckpoint | undefined {
  return entries.find(({ kind }) => kind === 'turn') ?? entries[0];
}
