import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { addPictures } from '../pictures/renderer.js';
import { definePlugin } from './registration.js';

/** Frames for the screenshots of pages in cell outputs. */
export const picturesPlugin = definePlugin({
  id: 'oh-jupyter:pictures',
  description: 'Frames screenshots in cell outputs, and enlarges them.',
  requires: [IRenderMimeRegistry],
  optional: [],
  activate: (_, registry) => addPictures(registry)
});
