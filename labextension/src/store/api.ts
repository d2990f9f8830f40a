import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import { kernelUrl, requestOfKernel } from '../events/api.js';
import { isRecord, text } from '../events/wire.js';

/** Metadata of a file or directory. */
export interface IStoreEntry {
  readonly path: string;
  readonly isDirectory: boolean;
  readonly bytes: number | null;
  /** ISO 8601; "" if the backend has none. */
  readonly modified: string;
}

/** Entries of a directory; for a large one the first. */
export interface IStoreListing {
  readonly entries: readonly IStoreEntry[];
  readonly total: number;
}

/** Client of the store endpoints of the server extension. */
export class StoreApi {
  constructor(readonly settings: ServerConnection.ISettings) {}

  /** Return the download URL of a file. */
  url(kernelId: string, path: string): string {
    return `${kernelUrl(this.settings, kernelId)}/${address(path)}`;
  }

  async list(kernelId: string, path: string): Promise<IStoreListing> {
    const query = `${address(path)}?details=true`;
    let response = await this._ask(kernelId, `${query}&if_loaded=true`);
    if (response.status === 204) {
      // The kernel restarted, or cannot reply without logging an error.
      response = await this._ask(kernelId, query);
    }
    const body: unknown = await response.json();
    const details = isRecord(body) ? body.details : null;
    if (!isRecord(body) || !Array.isArray(details)) {
      throw new Error('The server sent an unexpected listing.');
    }
    const entries = details.filter(isRecord).map(readEntry);
    return { entries, total: Number(body.total) };
  }

  async info(kernelId: string, path: string): Promise<IStoreEntry> {
    const response = await this._ask(kernelId, `${address(path)}?info=true`);
    const body: unknown = await response.json();
    return readEntry(isRecord(body) ? body : {});
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

function readEntry(entry: Readonly<Record<string, unknown>>): IStoreEntry {
  return {
    path: text(entry, 'path'),
    isDirectory: entry.type === 'directory',
    bytes: typeof entry.size === 'number' ? entry.size : null,
    modified: text(entry, 'modified')
  };
}
