import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type { OpenDocuments } from './documents.js';

/** Tells the server which documents have changes that are not in their files. */
export class UnsavedReporter {
  /**
   * @param documents - The open ones.
   * @param settings - Of the server that agents ask.
   */
  constructor(documents: OpenDocuments, settings: ServerConnection.ISettings) {
    this._documents = documents;
    this._settings = settings;
    documents.unsavedChanged.connect(() => void this.report());
    window.addEventListener('pagehide', () => {
      void this._put({ paths: [] }, true);
    });
  }

  /**
   * Tell it, if it is not what was told last; one request after the other.
   *
   * @param answered - The server's request to save that was carried out before.
   */
  async report(answered?: number): Promise<void> {
    this._last = this._last.then(async () => {
      const paths = this._documents.unsaved;
      const told = JSON.stringify(paths);
      if (answered !== undefined) {
        this._told = told;
        await this._put({ paths, answered });
      } else if (told !== this._told && !this._isAbsent) {
        this._told = told;
        await this._put({ paths });
      }
    });
    await this._last;
  }

  private async _put(
    report: { readonly paths: readonly string[]; readonly answered?: number },
    keepalive = false
  ): Promise<void> {
    const address = URLExt.join(this._settings.baseUrl, 'oh_jupyter/unsaved');
    const body = JSON.stringify({ client: this._client, ...report });
    try {
      const { status } = await ServerConnection.makeRequest(
        address,
        { method: 'PUT', body, keepalive },
        this._settings
      );
      this._isAbsent = status === 404;
    } catch {
      // The server is gone; the next change is told again.
      this._told = '';
    }
  }

  private readonly _documents: OpenDocuments;
  private readonly _settings: ServerConnection.ISettings;
  private readonly _client = UUID.uuid4();
  private _told = '[]';
  private _last: Promise<void> = Promise.resolve();
  /** The server has no extension that would want to know. */
  private _isAbsent = false;
}
