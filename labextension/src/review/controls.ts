/** Rows of a review, inside of cells and editors. */

/** Make a text with a class. */
export function span(className: string, text: string): HTMLSpanElement {
  const node = document.createElement('span');
  node.className = className;
  node.textContent = text;
  return node;
}

/** Make a row of buttons after a badge and a text. */
export function row(
  className: string,
  label: string,
  ...children: readonly HTMLElement[]
): HTMLDivElement {
  const node = document.createElement('div');
  node.className = `oh-Review-row ${className}`;
  node.setAttribute('role', 'group');
  node.setAttribute('aria-label', label);
  node.append(...children);
  return node;
}
