import { PathExt } from '@jupyterlab/coreutils';
import type {
  Kernel,
  ServerConnection,
  ServiceManager
} from '@jupyterlab/services';

import type { IRuntimeStatus } from '../control/operations.js';
import { askRuntime } from '../events/api.js';
import { REPLY_TIMEOUT_MS } from '../events/decision.js';
import { fleetMember } from '../events/fleet.js';
import { resourcesIn, type IResource } from './resources.js';

/** Reply of the server; without a runtime's status if that is busy. */
interface IServerInfo {
  readonly runtime: IRuntimeStatus | null;
}

/** Attempts per kernel with a runtime. */
const ATTEMPTS = 3;

/** Kernel of the server, with or without an open notebook. */
export interface IServerKernel {
  readonly id: string;
  /** Name of the notebook, else of the kernel. */
  readonly name: string;
  /** Path of the notebook, or "". */
  readonly path: string;
  readonly model: Kernel.IModel;
}

export function serverKernels({
  kernels,
  sessions
}: ServiceManager.IManager): readonly IServerKernel[] {
  const known = new Map(
    [...sessions.running()].map(session => [session.kernel?.id, session])
  );
  return [...kernels.running()].map(model => {
    const session = known.get(model.id);
    const isInFleet = session !== undefined && fleetMember(session) !== null;
    const path = isInFleet ? '' : (session?.path ?? '');
    const name = isInFleet ? session.name : PathExt.basename(path);
    return { id: model.id, name: name || model.name, path, model };
  });
}

/** Return whether a kernel has a runtime, without loading one. */
export async function hasRuntime(
  settings: ServerConnection.ISettings,
  { id }: Pick<IServerKernel, 'id'>
): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(REPLY_TIMEOUT_MS);
    // Confirmations would also be empty without a runtime.
    const path = 'events?limit=0&if_loaded=true';
    await askRuntime(settings, id, path, { signal });
    return true;
  } catch {
    return false;
  }
}

/** Fetch the resources of a runtime without a connection here; empty if it is too busy. */
export async function resourcesOf(
  settings: ServerConnection.ISettings,
  { id }: Pick<IServerKernel, 'id'>
): Promise<readonly IResource[]> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    // The server waits a second for the kernel's reply.
    const { runtime } = await askRuntime<IServerInfo>(
      settings,
      id,
      'server_info'
    );
    if (runtime) {
      return resourcesIn(runtime);
    }
  }
  return [];
}
