import type { FileBrowser } from '@jupyterlab/filebrowser';
import { Widget } from '@lumino/widgets';

import { button } from '../button.js';
import { trans } from '../translation.js';
import { parsePath } from './paths.js';

/** Notice in place of an empty list of stores or files, with the next step. */
export class EmptyStore extends Widget {
  /** @param onCreate - Creates a notebook whose kernel has a store. */
  constructor(
    browser: FileBrowser,
    localPath: (path: string) => string,
    onCreate: () => void
  ) {
    super();
    this.addClass('oh-StoreEmpty');
    this.hide();
    const noStore = document.createElement('p');
    noStore.textContent = trans.__(
      'No kernel has a runtime, so there is no store yet.'
    );
    const create = button(
      trans.__('Notebook with an Agent'),
      trans.__('Create a notebook whose kernel has a store'),
      onCreate
    );
    const noFile = document.createElement('p');
    noFile.textContent = trans.__(
      'This folder is empty. Upload a file with the button above, or run this in a cell:'
    );
    const example = document.createElement('code');
    example.textContent = '%oh_store write notes.txt text';
    const { model } = browser;
    model.refreshed.connect(() => {
      const isRoot = parsePath(localPath(model.path)).folder === '';
      this.node.replaceChildren(
        ...(isRoot ? [noStore, create] : [noFile, example])
      );
      this.setHidden([...model.items()].length > 0);
    });
  }
}
