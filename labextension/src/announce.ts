/** Texts for screen readers, which announce only what changes in a region that they know. */

let region: HTMLElement | null = null;

/** Make the region in which texts are announced, before the first one. */
export function prepareAnnouncements(): void {
  region = document.createElement('div');
  region.className = 'oh-Announcement';
  region.setAttribute('aria-live', 'polite');
  document.body.append(region);
}

/** Have screen readers announce a text. */
export function announce(text: string): void {
  if (region) {
    // An equal text in a new node is announced again.
    const line = document.createElement('p');
    line.textContent = text;
    region.replaceChildren(line);
  }
}
