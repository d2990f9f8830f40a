import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';

import { kernelUrl, requestOfKernel } from '../events/api.js';
import { isRecord, text } from '../events/wire.js';

/** What is known of a file or directory without reading it. */
export interface IStoreEntry {
  readonly path: string;
  readonly isDirectory: boolean;
  readonly bytes: number | null;
  /** ISO 8601; "" where the backend has none. */
  readonly modified: string;
}

/** The entries of a directory; of a large one the first. */
export interface IStoreListing {
  readonly entries: readonly IStoreEntry[];
  readonly total: number;
}

/** The endpoints of the stores of kernels. */
export class StoreApi {
  /** @param settings - Of the Jupyter server that runs the extension. */
  constructor(readonly settings: ServerConnection.ISettings) {}

  /** Where a file can be had by a link. */
  url(kernelId: string, path: string): string {
    return `${kernelUrl(this.settings, kernelId)}/${address(path)}`;
  }

  async list(kernelId: string, path: string): Promise<IStoreListing> {
    const query = `${address(path)}?details=true`;
    let answer = await this._ask(kernelId, `${query}&if_loaded=true`);
    if (answer.status === 204) {
      // The kernel restarted meanwhile, or cannot say it without an error.
      answer = await this._ask(kernelId, query);
    }
    const reply: unknown = await answer.json();
    const details = isRecord(reply) ? reply.details : null;
    if (!isRecord(reply) || !Array.isArray(details)) {
      throw new Error('The server sent a listing of an unknown form.');
    }
    const entries = details.filter(isRecord).map(readEntry);
    return { entries, total: Number(reply.total) };
  }

  async info(kernelId: string, path: string): Promise<IStoreEntry> {
    const answer = await this._ask(kernelId, `${address(path)}?info=true`);
    const reply: unknown = await answer.json();
    return readEntry(isRecord(reply) ? reply : {});
  }

  async read(kernelId: string, path: string): Promise<Uint8Array> {
    const answer = await this._ask(kernelId, address(path));
    return new Uint8Array(await answer.arrayBuffer());
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
