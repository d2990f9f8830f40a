// Runs in an isolated world of one frame and changes nothing. It measures every element or, on a
// page that is too large, the first `maxDrawn` nearby ones: in the viewport, then one screen above
// and below. If only the tree is too large, it measures all elements and selects the nearby ones.
// The elements are in flat-tree order, to match a DevTools snapshot; `parents` holds indices into
// the same list.
(async (tooLarge, maxDrawn) => {
  const INTERSECTION_TIMEOUT_MS = 300; // ms to wait for intersections before calculating them
  const MAX_UNDRAWN = 1000; // elements without a box, such as options, inside the drawn ones
  const MAX_SUBTREE_CHARS = 20_000; // characters in an element captured with all its content
  const MAX_VISIBLE_CHARS = 4_000; // characters of visible text in a larger element

  const flatChildren = (node) => {
    if (node.shadowRoot) return node.shadowRoot.children;
    if (node.localName === "slot" && node.getRootNode() !== document) {
      const assigned = node.assignedElements();
      if (assigned.length) return assigned;
    }
    return node.children;
  };
  const flatTree = () => {
    const all = [], parents = [];
    const stack = document.documentElement ? [[document.documentElement, -1]] : [];
    while (stack.length) {
      const [node, parent] = stack.pop();
      const index = all.push(node) - 1;
      parents.push(parent);
      const children = flatChildren(node);
      for (let i = children.length - 1; i >= 0; i--) stack.push([children[i], index]);
    }
    return { all, parents };
  };

  // Select the nearby elements with all their ancestors, the viewport's first.
  const nearby = (all, parents) => {
    const kept = new Array(all.length).fill(false);
    const boxes = all.map((element) => element.getBoundingClientRect());
    const isWithin = (box, margin) =>
      box.width * box.height > 0 && box.bottom > -margin && box.top < innerHeight + margin &&
      box.right > 0 && box.left < innerWidth;
    let drawn = 0, undrawn = 0;
    for (const margin of [0, innerHeight]) {
      for (let i = 0; i < all.length && drawn < maxDrawn; i++) {
        if (kept[i] || !isWithin(boxes[i], margin)) continue;
        drawn++;
        for (let at = i; at >= 0 && !kept[at]; at = parents[at]) kept[at] = true;
      }
    }
    for (let i = 1; i < all.length && undrawn < MAX_UNDRAWN; i++) {
      if (kept[i] || !kept[parents[i]] || boxes[i].width || boxes[i].height) continue;
      kept[i] = true;
      undrawn++;
    }
    return kept;
  };

  // Divide the kept elements: `roots` are the outermost ones with only kept content, `spine` the
  // others around them. Both are indices into the measured elements.
  const divide = (all, parents, kept) => {
    const sizes = new Array(all.length).fill(1);
    const held = kept.map(Number), chars = new Array(all.length).fill(0);
    for (let i = all.length - 1; i >= 0; i--) {
      for (let node = all[i].firstChild; node; node = node.nextSibling) {
        if (node.nodeType === Node.TEXT_NODE) chars[i] += node.length;
      }
      if (parents[i] < 0) continue;
      sizes[parents[i]] += sizes[i];
      held[parents[i]] += held[i];
      chars[parents[i]] += chars[i];
    }
    const places = new Map(), roots = [], spine = [];
    for (let i = 0, end = 0; i < all.length; i++) {
      if (!kept[i]) continue;
      const place = tooLarge === "tree" ? i : places.size;
      places.set(i, place);
      if (i < end) continue;
      if (held[i] === sizes[i] && chars[i] <= MAX_SUBTREE_CHARS) {
        roots.push(place);
        end = i + sizes[i];
      } else spine.push(place);
    }
    return { places, roots, spine };
  };

  // The visible part of a text that is too large to capture with its element.
  const textInSight = (elements, spine) => {
    const caret = document.caretRangeFromPoint(innerWidth / 2, 8);
    const node = caret && caret.startContainer;
    const owner = node && node.nodeType === Node.TEXT_NODE ? elements.indexOf(node.parentElement) : -1;
    if (!spine.includes(owner)) return null;
    return { owner, text: node.data.substr(caret.startOffset, MAX_VISIBLE_CHARS) };
  };

  // Intersections know about clipping by ancestors and by the frames around this one.
  const intersections = (elements) =>
    new Promise((resolve) => {
      const ratios = new Map();
      const observer = new IntersectionObserver((entries) => {
        for (const entry of entries) {
          const box = entry.boundingClientRect;
          const empty = box.width * box.height === 0;
          ratios.set(entry.target, empty ? 0 : entry.intersectionRatio);
        }
        if (ratios.size >= elements.length) finish();
      });
      const finish = () => {
        observer.disconnect();
        resolve(ratios);
      };
      setTimeout(finish, INTERSECTION_TIMEOUT_MS);
      for (const element of elements) observer.observe(element);
      if (!elements.length) finish();
    });

  const calculated = (box) => {
    if (box.width * box.height === 0) return 0;
    const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
    const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
    return (Math.max(0, width) * Math.max(0, height)) / (box.width * box.height);
  };

  const hitAtCentre = (element, box) => {
    const x = box.left + box.width / 2;
    const y = box.top + box.height / 2;
    let hit = document.elementFromPoint(x, y);
    while (hit && hit.shadowRoot) {
      const deeper = hit.shadowRoot.elementFromPoint(x, y);
      if (!deeper || deeper === hit) break;
      hit = deeper;
    }
    while (hit && hit !== element) {
      hit = hit.assignedSlot || hit.parentNode || hit.host;
    }
    return hit === element;
  };

  const round = (value) => Math.round(value * 100) / 100;
  const measure = async (elements, parents) => {
    const ratios = await intersections(elements);
    const tags = [], boxes = [], visibilities = [], hits = [], pointers = [], insides = {};
    elements.forEach((element, index) => {
      const box = element.getBoundingClientRect();
      const drawn = element.getClientRects().length > 0;
      tags.push(element.nodeName.toUpperCase());
      boxes.push(drawn ? [box.x, box.y, box.width, box.height].map(round) : null);
      let ratio = ratios.has(element) ? ratios.get(element) : calculated(box);
      if (ratio > 0 && element.checkVisibility && !element.checkVisibility({ visibilityProperty: true })) {
        ratio = 0;
      }
      visibilities.push(round(ratio));
      const seen = ratio > 0;
      const style = seen ? getComputedStyle(element) : null;
      hits.push(seen && hitAtCentre(element, box) ? 1 : 0);
      pointers.push(seen && (style.cursor === "pointer" || element.hasAttribute("onclick")) ? 1 : 0);
      if (element.localName === "iframe" || element.localName === "frame") {
        const inner = getComputedStyle(element);
        insides[index] = [
          box.x + element.clientLeft + parseFloat(inner.paddingLeft || 0),
          box.y + element.clientTop + parseFloat(inner.paddingTop || 0),
        ];
      }
    });

    let focused = document.activeElement;
    while (focused && focused.shadowRoot && focused.shadowRoot.activeElement) {
      focused = focused.shadowRoot.activeElement;
    }
    return {
      viewport: [innerWidth, innerHeight],
      tags, parents, boxes, visibilities, hits, pointers, insides,
      focused: focused ? elements.indexOf(focused) : -1,
    };
  };

  const { all, parents } = flatTree();
  // Return a string: it passes through Playwright's layers faster than many values.
  if (!tooLarge) return JSON.stringify(await measure(all, parents));
  const kept = nearby(all, parents);
  const { places, roots, spine } = divide(all, parents, kept);
  const isTree = tooLarge === "tree";
  const elements = isTree ? all : all.filter((_, i) => kept[i]);
  const above = isTree ? parents :
    parents.filter((_, i) => kept[i]).map((parent) => places.get(parent) ?? -1);
  const measured = await measure(elements, above);
  globalThis.nearby = isTree ? [...roots, ...spine].map((i) => all[i]) : elements;
  return JSON.stringify({
    ...measured, roots, spine, leftOut: all.length - places.size,
    inSight: textInSight(elements, spine),
  });
})
