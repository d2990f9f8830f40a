// Runs in every frame before the page's own scripts: knows which short timers are pending, so
// that an observation can wait for what an action set off, and for nothing else.
(() => {
  const key = Symbol.for("oh_jupyter.activity");
  if (window[key]) return;
  const LONGEST_TIMER = 400; // ms; later ones are not waited for
  const QUIET = 30; // ms without a change after the last one
  const LOOP_FIRES = 5; // this many fires of one delay ...
  const LOOP_WINDOW = 2500; // ... within so many ms make it a polling loop
  const { setTimeout, clearTimeout, requestAnimationFrame, MutationObserver } = window;
  const now = performance.now.bind(performance);

  const due = new Map(); // timer id -> time at which it fires
  const fires = new Map(); // delay -> times at which timers of that delay fired

  const isLoop = (delay) => {
    const recent = (fires.get(delay) || []).filter((time) => now() - time < LOOP_WINDOW);
    if (recent.length) fires.set(delay, recent);
    else fires.delete(delay);
    return recent.length >= LOOP_FIRES;
  };

  window.setTimeout = new Proxy(setTimeout, {
    apply(native, self, args) {
      const [callback, wanted, ...rest] = args;
      const delay = Math.max(0, Number(wanted) || 0);
      if (typeof callback !== "function" || delay > LONGEST_TIMER || isLoop(delay)) {
        return Reflect.apply(native, self, args);
      }
      let id = 0;
      const fire = function (...values) {
        due.delete(id);
        fires.set(delay, [...(fires.get(delay) || []), now()].slice(-LOOP_FIRES));
        return Reflect.apply(callback, this, values);
      };
      id = Reflect.apply(native, self, [fire, wanted, ...rest]);
      due.set(id, now() + delay);
      return id;
    },
  });
  window.clearTimeout = new Proxy(clearTimeout, {
    apply(native, self, args) {
      due.delete(args[0]);
      return Reflect.apply(native, self, args);
    },
  });

  // Resolves, with whether the page has asked to be closed, after one frame in which nothing changed and no short timer is pending, and at
  // the latest after `limit` ms; without waiting for that frame if `idle` (nothing was done).
  const settle = ({ limit, idle }) =>
    new Promise((resolve) => {
      const start = now();
      let changed = start - QUIET;
      let lastTimer = start;
      const note = () => (changed = now());
      const observer = new MutationObserver(note);
      observer.observe(document, {
        subtree: true, childList: true, attributes: true, characterData: true,
      });
      document.addEventListener("scroll", note, true);
      const look = () => {
        const time = now();
        const waits = [...due.values()].some((at) => at <= start + LONGEST_TIMER + QUIET);
        if (waits) lastTimer = time;
        const restless = time - changed < QUIET && time - lastTimer < 5 * QUIET;
        if ((waits || restless) && time - start < limit) return next();
        observer.disconnect();
        document.removeEventListener("scroll", note, true);
        resolve(window.closed);
      };
      // A frame that is not drawn gets no animation frames: the timer looks then.
      const next = () => {
        let done = false;
        const once = () => {
          if (done) return;
          done = true;
          look();
        };
        requestAnimationFrame(once);
        setTimeout(once, 50);
      };
      if (idle) look();
      else next();
    });

  Object.defineProperty(window, key, { value: Object.freeze({ settle }), enumerable: false });
})();
