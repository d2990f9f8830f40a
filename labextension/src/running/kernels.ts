import { PathExt } from '@jupyterlab/coreutils';
import type {
  Kernel,
  ServerConnection,
  ServiceManager
} from '@jupyterlab/services';

import { askRuntime } from '../events/api.js';
import { ANSWER_TIMEOUT_MS } from '../events/decision.js';
import { placeOf } from '../events/fleet.js';
import { readResources, type IResource } from './resources.js';

/** How often a kernel is asked that has a runtime. */
const ATTEMPTS = 3;

/** A kernel of the server, whether or not its notebook is open. */
export interface IServerKernel {
  readonly id: string;
  /** Of the notebook, or of the kernel where there is none. */
  readonly name: string;
  /** Of the notebook; "" where there is none. */
  readonly path: string;
  readonly model: Kernel.IModel;
}

/** All kernels of the server. */
export function serverKernels({
  kernels,
  sessions
}: ServiceManager.IManager): readonly IServerKernel[] {
  const known = new Map(
    [...sessions.running()].map(session => [session.kernel?.id, session])
  );
  return [...kernels.running()].map(model => {
    const session = known.get(model.id);
    const isOfFleet = session !== undefined && placeOf(session) !== null;
    const path = isOfFleet ? '' : (session?.path ?? '');
    const name = isOfFleet ? session.name : PathExt.basename(path);
    return { id: model.id, name: name || model.name, path, model };
  });
}

/** Whether there is a runtime in a kernel; none is loaded for that. */
export async function hasRuntime(
  settings: ServerConnection.ISettings,
  { id }: Pick<IServerKernel, 'id'>
): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    // What waits is told as nothing of kernels without a runtime.
    const path = 'events?limit=0&if_loaded=true';
    await askRuntime(settings, id, path, { signal });
    return true;
  } catch {
    return false;
  }
}

/** What runs in a runtime whose notebook is not open here; nothing, if it is too busy to tell. */
export async function resourcesOf(
  settings: ServerConnection.ISettings,
  { id }: Pick<IServerKernel, 'id'>
): Promise<readonly IResource[]> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    // The server gives a kernel a second to answer this.
    const found = readResources(await askRuntime(settings, id, 'server_info'));
    if (found) {
      return found;
    }
  }
  return [];
}
