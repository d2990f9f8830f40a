/** Rendering of outputs without scripts, while a condition holds. */
import type { IRenderMime, IRenderMimeRegistry } from '@jupyterlab/rendermime';

type Bundle = Parameters<IRenderMimeRegistry['preferredMimeType']>[0];

const ACTIVE =
  /<(script|iframe|object|embed|form|style|link)\b|\son\w+\s*=|javascript:/i;
const MARKUP = ['text/html', 'image/svg+xml', 'text/markdown'];

/** Types that Jupyter draws itself; other extensions' types, such as Vega's, may load addresses. */
const QUIET =
  /^(text\/(html|markdown|latex|plain)|image\/(png|jpeg|gif|bmp|webp)|application\/(json|vnd\.jupyter\.(stdout|stderr|error)))$/;

/** Return the types of an output that are shown without trust. */
export function quiet(bundle: Bundle): Bundle {
  return Object.fromEntries(
    Object.entries(bundle).filter(([type]) => QUIET.test(type))
  );
}

/** Return whether Jupyter would show less of an output without trust. */
export function losesScripts(
  data: IRenderMime.IMimeModel['data'],
  trusted: string | undefined,
  untrusted: string | undefined
): boolean {
  return (
    trusted !== untrusted ||
    MARKUP.some(type => type in data && ACTIVE.test(String(data[type])))
  );
}

/**
 * Make a document's renderers treat outputs as untrusted while they are held.
 *
 * The trust of a cell says who ran it; for a sandboxed kernel that is not enough, since an agent's
 * code in the kernel decides what a person's cell displays.
 */
export function gate(
  registry: IRenderMimeRegistry,
  isHeld: () => boolean,
  onHeld: () => void
): void {
  withoutRequests(registry, isHeld);
  const preferred = registry.preferredMimeType.bind(registry);
  const create = registry.createRenderer.bind(registry);
  registry.preferredMimeType = (bundle: Bundle, safe) => {
    if (!isHeld()) {
      return preferred(bundle, safe);
    }
    const type = preferred(quiet(bundle), 'ensure');
    if (losesScripts(bundle, preferred(bundle, 'any'), type)) {
      onHeld();
    }
    return type;
  };
  registry.createRenderer = mimeType => {
    const renderer = create(mimeType);
    const render = renderer.renderModel.bind(renderer);
    renderer.renderModel = model => render(isHeld() ? untrusted(model) : model);
    return renderer;
  };
}

const LOADED = ['src', 'srcset', 'poster', 'background'];

/** Remove what the page would load from sanitized HTML: an address can carry data out of a box. */
function withoutRequests(
  registry: IRenderMimeRegistry,
  isHeld: () => boolean
): void {
  const { sanitizer } = registry;
  const sanitize: IRenderMime.ISanitizer['sanitize'] = (dirty, options) => {
    const html = sanitizer.sanitize(dirty, options);
    return isHeld() ? withoutAddresses(html) : html;
  };
  const guarded = new Proxy(sanitizer, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      return key === 'sanitize'
        ? sanitize
        : typeof value === 'function'
          ? value.bind(target)
          : value;
    }
  });
  Object.defineProperty(registry, 'sanitizer', { value: guarded });
}

function withoutAddresses(html: string): string {
  if (!/src|poster|background|url/i.test(html)) {
    return html;
  }
  // Such a document loads nothing.
  const { body } = new DOMParser().parseFromString(html, 'text/html');
  for (const element of body.querySelectorAll('*')) {
    for (const name of LOADED) {
      if (!/^data:image\//i.test(element.getAttribute(name) ?? '')) {
        element.removeAttribute(name);
      }
    }
    if (/url\s*\(|\\/i.test(element.getAttribute('style') ?? '')) {
      element.removeAttribute('style');
    }
  }
  return body.innerHTML;
}

/** Return a view of a model that is not trusted. */
function untrusted(model: IRenderMime.IMimeModel): IRenderMime.IMimeModel {
  return new Proxy(model, {
    get(target, key) {
      if (key === 'trusted') {
        return false;
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    }
  });
}
