import { PathExt } from '@jupyterlab/coreutils';
import type { Contents, ServerConnection } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { trans } from '../translation.js';
import type { IStoreEntry } from '../control/operations.js';
import type { StoreApi } from './api.js';
import { decoded, encoded } from './content.js';
import { freeName, kernelFolder, parsePath } from './paths.js';

export const DRIVE_NAME = 'OpenHandsStore';

export interface IStoreKernel {
  readonly id: string;
  readonly name: string;
}

/** Drive with a folder for the store of each kernel that has a runtime. */
export class StoreDrive implements Contents.IDrive {
  constructor(
    private readonly _api: StoreApi,
    private readonly _kernels: () => readonly IStoreKernel[],
    private readonly _isStore: (kernel: IStoreKernel) => Promise<boolean>,
    private readonly _onTruncated: (listed: number, total: number) => void
  ) {}

  readonly name = DRIVE_NAME;

  get serverSettings(): ServerConnection.ISettings {
    return this._api.settings;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  async get(
    localPath: string,
    options: Contents.IFetchOptions = {}
  ): Promise<Contents.IModel> {
    const { folder, path } = parsePath(localPath);
    if (!folder) {
      return this._root();
    }
    const id = this._kernelId(localPath);
    if (options.type === 'directory' || !path) {
      return this._list(id, folder, path);
    }
    const entry = await this._api.info(id, path);
    if (entry.type === 'directory') {
      return this._list(id, folder, path);
    }
    const model = modelOf(folder, entry);
    if (options.content === false) {
      return model;
    }
    const isNotebook = options.type === 'notebook';
    const format = isNotebook ? 'json' : (options.format ?? undefined);
    const bytes = await this._api.read(id, path);
    const type = isNotebook ? 'notebook' : 'file';
    return { ...model, type, ...decoded(bytes, format) };
  }

  async getDownloadUrl(localPath: string): Promise<string> {
    const id = this._kernelId(localPath);
    return this._api.url(id, parsePath(localPath).path);
  }

  async newUntitled(
    options: Contents.ICreateOptions = {}
  ): Promise<Contents.IModel> {
    if (options.type !== 'file') {
      throw new Error(
        options.type === 'directory'
          ? trans.__(
              'A store has no empty folders; upload or create a file instead.'
            )
          : trans.__(
              'Notebooks cannot be created in a store; use the file browser.'
            )
      );
    }
    const parent = options.path ?? '';
    const name = `untitled${options.ext ?? '.txt'}`;
    const path = await this._freePath(parent, name);
    const model = await this._write(path, new Blob([]));
    this.fileChanged.emit({ type: 'new', oldValue: null, newValue: model });
    return model;
  }

  async delete(localPath: string): Promise<void> {
    const id = this._kernelId(localPath);
    await this._api.delete(id, parsePath(localPath).path);
    const oldValue = { path: localPath };
    this.fileChanged.emit({ type: 'delete', oldValue, newValue: null });
  }

  async rename(
    oldLocalPath: string,
    newLocalPath: string
  ): Promise<Contents.IModel> {
    const [from, to] = [parsePath(oldLocalPath), parsePath(newLocalPath)];
    if (from.kernel !== to.kernel) {
      throw new Error(
        trans.__('Files cannot be moved from one store to another.')
      );
    }
    const id = this._kernelId(oldLocalPath);
    await this._api.rename(id, from.path, to.path);
    const model = await this.get(newLocalPath, { content: false });
    const oldValue = { path: oldLocalPath };
    this.fileChanged.emit({ type: 'rename', oldValue, newValue: model });
    return model;
  }

  async save(
    localPath: string,
    options: Partial<Contents.IModel> = {}
  ): Promise<Contents.IModel> {
    const { chunk, content, format, type } = options;
    const isJson = type === 'notebook' || format === 'json';
    const piece = encoded(content, isJson ? 'json' : (format ?? undefined));
    const pieces = [...(this._uploads.get(localPath) ?? []), piece];
    if (chunk !== undefined && chunk >= 0) {
      // Files are written as a whole; -1 is the last chunk.
      this._uploads.set(localPath, chunk <= 1 ? [piece] : pieces);
      return modelOf(parsePath(localPath).folder, partialEntry(localPath));
    }
    this._uploads.delete(localPath);
    const whole = chunk === undefined ? [piece] : pieces;
    const model = await this._write(localPath, new Blob(whole));
    this.fileChanged.emit({ type: 'save', oldValue: null, newValue: model });
    return { ...model, ...(type && { type }) };
  }

  async copy(localPath: string, toLocalDir: string): Promise<Contents.IModel> {
    const id = this._kernelId(localPath);
    const bytes = await this._api.read(id, parsePath(localPath).path);
    const name = PathExt.basename(localPath);
    const path = await this._freePath(toLocalDir, name);
    const model = await this._write(
      path,
      new Blob([bytes as Uint8Array<ArrayBuffer>])
    );
    this.fileChanged.emit({ type: 'new', oldValue: null, newValue: model });
    return model;
  }

  /** Stores have no checkpoints, but JupyterLab requests one at each save. */
  async createCheckpoint(): Promise<Contents.ICheckpointModel> {
    return { id: '', last_modified: '' };
  }

  async listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return [];
  }

  async restoreCheckpoint(): Promise<void> {
    throw new Error(trans.__('A store keeps no checkpoints.'));
  }

  async deleteCheckpoint(): Promise<void> {
    return;
  }

  private async _root(): Promise<Contents.IModel> {
    const kernels = this._kernels();
    const stores = await Promise.all(kernels.map(this._isStore));
    const folders = kernels
      .filter((_, index) => stores[index])
      .map(({ id, name }) => directory(kernelFolder(name, id), null));
    return directory('', folders);
  }

  private async _list(
    id: string,
    folder: string,
    path: string
  ): Promise<Contents.IModel> {
    const { details, total } = await this._api.list(id, path);
    if (details.length < total) {
      this._onTruncated(details.length, total);
    }
    return directory(
      PathExt.join(folder, path),
      details.map(entry => modelOf(folder, entry))
    );
  }

  private async _write(
    localPath: string,
    body: Blob
  ): Promise<Contents.IModel> {
    const id = this._kernelId(localPath);
    await this._api.write(id, parsePath(localPath).path, body);
    return this.get(localPath, { content: false });
  }

  private async _freePath(parent: string, name: string): Promise<string> {
    const id = this._kernelId(parent);
    const { details, total } = await this._api.list(id, parsePath(parent).path);
    if (details.length < total) {
      throw new Error(
        trans.__('This folder has too many files to find a free name.')
      );
    }
    const names = new Set(details.map(({ path }) => PathExt.basename(path)));
    return PathExt.join(parent, freeName(name, names));
  }

  private _kernelId(localPath: string): string {
    const { kernel, folder } = parsePath(localPath);
    const store = this._kernels().find(
      ({ id }) => kernel && id.startsWith(kernel)
    );
    if (!store) {
      throw new Error(
        folder
          ? trans.__('The kernel of %1 is not running.', folder)
          : trans.__('Open the store of a kernel first.')
      );
    }
    return store.id;
  }

  readonly fileChanged = new Signal<this, Contents.IChangedArgs>(this);
  private readonly _uploads = new Map<string, Uint8Array<ArrayBuffer>[]>();
  private _isDisposed = false;
}

/** Metadata of an incomplete upload. */
function partialEntry(localPath: string): IStoreEntry {
  const { path } = parsePath(localPath);
  return { path, type: 'file', size: null, modified: null };
}

function modelOf(folder: string, entry: IStoreEntry): Contents.IModel {
  const path = PathExt.join(folder, entry.path);
  const model = {
    ...directory(path, null),
    last_modified: entry.modified ?? ''
  };
  if (entry.type === 'directory') {
    return model;
  }
  return {
    ...model,
    type: path.endsWith('.ipynb') ? 'notebook' : 'file',
    format: null as unknown as Contents.FileFormat,
    ...(entry.size !== null && { size: entry.size })
  };
}

function directory(
  path: string,
  content: readonly Contents.IModel[] | null
): Contents.IModel {
  return {
    name: PathExt.basename(path),
    path,
    type: 'directory',
    writable: true,
    created: '',
    last_modified: '',
    mimetype: '',
    format: 'json',
    content
  };
}
