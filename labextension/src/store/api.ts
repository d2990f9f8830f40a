import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import type { IStoreEntry, IStoreListing } from '../control/operations.js';
import { kernelUrl, requestOfKernel } from '../events/api.js';

/** Entries of a directory; for a large one the first. */
export type StoreDetails = Pick<IStoreListing, 'details' | 'total'>;

/** Client of the store endpoints of the server extension. */
export class StoreApi {
  constructor(readonly settings: ServerConnection.ISettings) {}

  /** Return the download URL of a file. */
  url(kernelId: string, path: string): string {
    return `${kernelUrl(this.settings, kernelId)}/${address(path)}`;
  }

  async list(kernelId: string, path: string): Promise<StoreDetails> {
    const query = `${address(path)}?details=true`;
    let response = await this._ask(kernelId, `${query}&if_loaded=true`);
    if (response.status === 204) {
      // The kernel restarted, or cannot reply without logging an error.
      response = await this._ask(kernelId, query);
    }
    return (await response.json()) as StoreDetails;
  }

  async info(kernelId: string, path: string): Promise<IStoreEntry> {
    const response = await this._ask(kernelId, `${address(path)}?info=true`);
    return (await response.json()) as IStoreEntry;
  }

  async read(kernelId: string, path: string): Promise<Uint8Array> {
    const response = await this._ask(kernelId, address(path));
    return new Uint8Array(await response.arrayBuffer());
  }

  async write(kernelId: string, path: string, body: Blob): Promise<void> {
    await this._ask(kernelId, address(path), { method: 'PUT', body });
  }

  async rename(kernelId: string, path: string, to: string): Promise<void> {
    const query = URLExt.objectToQueryString({ to });
    const init = { method: 'PATCH' };
    await this._ask(kernelId, `${address(path)}${query}`, init);
  }

  async delete(kernelId: string, path: string): Promise<void> {
    await this._ask(kernelId, address(path), { method: 'DELETE' });
  }

  private _ask(
    kernelId: string,
    path: string,
    init: RequestInit = {}
  ): Promise<Response> {
    return requestOfKernel(this.settings, kernelId, path, init);
  }
}

function address(path: string): string {
  return `store/${URLExt.encodeParts(path)}`;
}
