import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type { OpenDocuments } from './documents.js';

/** Reports to the server which documents are unsaved. */
export class UnsavedReporter {
  constructor(
    private readonly _documents: OpenDocuments,
    private readonly _settings: ServerConnection.ISettings
  ) {
    this._documents.unsavedChanged.connect(() => void this.report());
    window.addEventListener('pagehide', () => {
      void this._put({ paths: [] }, true);
    });
  }

  /** Report changes since the last report, or the given save request of the server as done. */
  async report(answered?: number): Promise<void> {
    this._last = this._last.then(async () => {
      const paths = this._documents.unsaved;
      const report = JSON.stringify(paths);
      if (answered !== undefined) {
        this._reported = report;
        await this._put({ paths, answered });
      } else if (report !== this._reported && !this._isAbsent) {
        this._reported = report;
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
      // The server is unreachable; report again at the next change.
      this._reported = '';
    }
  }

  private readonly _client = UUID.uuid4();
  private _reported = '[]';
  private _last: Promise<void> = Promise.resolve();
  /** The server has no extension to report to. */
  private _isAbsent = false;
}
