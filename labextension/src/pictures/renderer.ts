import {
  imageRendererFactory,
  RenderedImage,
  type IRenderMime
} from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';

import { isRecord, text } from '../events/wire.js';
import { openLightbox } from './lightbox.js';

/** Before Jupyter's own renderer of pictures, after all that comes before it. */
const RANK = 89;

/** Renders pictures; those of our magics with a frame, to be opened by a click. */
export class RenderedPicture extends RenderedImage {
  constructor(options: IRenderMime.IRendererOptions, trans: TranslationBundle) {
    super(options);
    this._trans = trans;
  }

  override async render(model: IRenderMime.IMimeModel): Promise<void> {
    await super.render(model);
    const metadata = model.metadata[this.mimeType];
    const image = this.node.querySelector('img');
    if (image && isRecord(metadata) && metadata.oh_jupyter === 'picture') {
      this._frame(image, text(metadata, 'alt'));
    }
  }

  private _frame(image: HTMLImageElement, label: string): void {
    image.alt = label;
    image.className = 'oh-Picture';
    image.tabIndex = 0;
    image.title = this._trans.__('Enlarge');
    image.setAttribute('role', 'button');
    image.addEventListener('click', () =>
      openLightbox(image.src, label, this._trans)
    );
    image.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        event.stopPropagation();
        image.click();
      }
    });
  }

  private readonly _trans: TranslationBundle;
}

/** Have pictures rendered with frames. */
export function addPictures(
  registry: {
    addFactory: (f: IRenderMime.IRendererFactory, r: number) => void;
  },
  trans: TranslationBundle
): void {
  registry.addFactory(
    {
      ...imageRendererFactory,
      mimeTypes: ['image/png'],
      createRenderer: options => new RenderedPicture(options, trans)
    },
    RANK
  );
}
