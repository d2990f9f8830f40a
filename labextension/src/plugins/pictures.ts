import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addPictures } from '../pictures/renderer.js';

/** Shows the pictures of pages in cells. */
export const picturesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:pictures',
  description: 'Frames the pictures of pages in cells, and enlarges them.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    registry: IRenderMimeRegistry,
    translator: ITranslator | null
  ): void =>
    addPictures(registry, (translator ?? nullTranslator).load('oh_jupyter'))
};
