// Runs in an isolated world of one frame and changes nothing: measures every element.
// The elements come in the order of the flat tree, so that they can be matched with a
// DevTools snapshot; `parents` holds indices into the same list.
(async () => {
  const INTERSECTION_TIMEOUT_MS = 300; // ms to wait for intersections before they are calculated instead
  const elements = [];
  const parents = [];

  const flatChildren = (node) => {
    if (node.shadowRoot) return node.shadowRoot.children;
    if (node.localName === "slot" && node.getRootNode() !== document) {
      const assigned = node.assignedElements();
      if (assigned.length) return assigned;
    }
    return node.children;
  };
  const stack = document.documentElement ? [[document.documentElement, -1]] : [];
  while (stack.length) {
    const [node, parent] = stack.pop();
    const index = elements.push(node) - 1;
    parents.push(parent);
    const children = flatChildren(node);
    for (let i = children.length - 1; i >= 0; i--) stack.push([children[i], index]);
  }

  // Intersections know about clipping by ancestors and by the frames around this one.
  const intersections = () =>
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

  const ratios = await intersections();
  const round = (value) => Math.round(value * 100) / 100;
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
  // As text, since one long string passes through the layers above faster than many values.
  return JSON.stringify({
    viewport: [innerWidth, innerHeight],
    tags, parents, boxes, visibilities, hits, pointers, insides,
    focused: focused ? elements.indexOf(focused) : -1,
  });
})()
