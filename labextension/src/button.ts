/** Make a button that leaves the focus where the person types. */
export function button(
  label: string,
  title: string,
  onClick: () => void
): HTMLButtonElement {
  const node = document.createElement('button');
  node.className = 'oh-Button';
  node.textContent = label;
  node.title = title;
  node.setAttribute('aria-label', title);
  node.addEventListener('mousedown', event => event.preventDefault());
  node.addEventListener('click', event => {
    event.stopPropagation();
    onClick();
  });
  return node;
}
