import { trans } from '../translation.js';

/** Show a picture as large as possible; Escape or a click closes it. */
export function openLightbox(source: string, label: string): void {
  const dialog = document.createElement('dialog');
  dialog.className = 'oh-Lightbox';
  dialog.setAttribute('aria-label', label);
  const close = document.createElement('button');
  close.className = 'oh-Lightbox-picture';
  close.title = trans.__('Close');
  const image = document.createElement('img');
  image.src = source;
  image.alt = label;
  close.append(image);
  dialog.append(close);
  dialog.addEventListener('click', () => dialog.close());
  // Keep keys from the notebook below.
  dialog.addEventListener('keydown', event => event.stopPropagation());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
