import {
  imageRendererFactory,
  RenderedImage,
  type IRenderMime,
  type IRenderMimeRegistry
} from '@jupyterlab/rendermime';

import { isRecord, text } from '../events/wire.js';
import { trans } from '../translation.js';
import { openLightbox } from './lightbox.js';

/** Just before Jupyter's image renderer. */
const RANK = 89;

/** Image renderer that frames screenshots of our magics and enlarges them on a click. */
export class RenderedPicture extends RenderedImage {
  constructor(options: IRenderMime.IRendererOptions) {
    super(options);
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
    image.title = trans.__('Enlarge');
    image.setAttribute('role', 'button');
    image.addEventListener('click', () => openLightbox(image.src, label));
    image.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        event.stopPropagation();
        image.click();
      }
    });
  }
}

export function addPictures(registry: IRenderMimeRegistry): void {
  registry.addFactory(
    {
      ...imageRendererFactory,
      mimeTypes: ['image/png'],
      createRenderer: options => new RenderedPicture(options)
    },
    RANK
  );
}
