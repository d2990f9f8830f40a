// Runs in every frame before the page's own scripts: knows which short timers are pending, so
// that an observation can wait for what an action set off, and for nothing else.
//
// A page cannot tell: SECRET is a random word of this browser, callbacks and their stack traces
// are the page's own, and what is replaced says of itself what the native function would say.
(() => {
  const MAX_TIMER_MS = 400; // ms; later ones are not waited for
  const QUIET_MS = 30; // ms without a change after the last one
  const MAX_FRAMES = 3; // that are waited for because the page has asked for one
  const DRAWN_MS = 500; // in which the next animation frame comes, however busy the machine
  const UNDRAWN_MS = 50; // the same where the last one did not come
  const MIN_TIMER_MS = 4; // ms; nested timers never fire sooner
  const LOOP_ROUNDS = 5; // one delay in this many rounds ...
  const LOOP_WINDOW_MS = 2500; // ... within so many ms is a polling loop
  const { setTimeout, clearTimeout, setInterval, clearInterval } = window;
  const { requestAnimationFrame, HTMLAnchorElement, MutationObserver, Map } = window;
  const { toString } = Function.prototype;
  const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
  const now = performance.now.bind(performance);

  const due = new Map(); // timer id -> time at which it fires
  const intervals = new Map(); // timer id -> its delay, and when it was set
  let lastFrame = -Infinity; // time at which the page last asked for a frame
  let undrawn = window !== window.top; // gets no animation frames, as far as is known
  let files = []; // clicks on links to files since the last look
  const rounds = new Map(); // delay -> times at which timers of that delay were set

  // Timers of one delay that are set before the first of them fires are one round.
  const isLoop = (delay) => {
    const time = now();
    const recent = (rounds.get(delay) || []).filter((at) => time - at < LOOP_WINDOW_MS);
    const loop = recent.length >= LOOP_ROUNDS;
    if (!recent.length || time - recent[recent.length - 1] >= delay) recent.push(time);
    rounds.set(delay, recent.slice(-LOOP_ROUNDS));
    if (rounds.size > 100) rounds.clear();
    return loop;
  };

  // Either function clears both kinds of timers.
  const forget = (id) => {
    due.delete(id);
    intervals.delete(id);
  };

  // Errors of a native function must not show that something of ours called it.
  const call = (native, self, args) => {
    try {
      return apply(native, self, args);
    } catch (error) {
      const stack = typeof error.stack === "string" ? error.stack : "";
      error.stack = stack.split("\n").filter((line) => !line.includes("SECRET")).join("\n");
      throw error;
    }
  };
  const replace = (holder, name, replacement) => {
    const before = getOwnPropertyDescriptor(holder, name);
    defineProperty(holder, name, { ...before, value: replacement[name] });
  };

  replace(window, "setTimeout", {
    setTimeout(handler) {
      "SECRET";
      const id = call(setTimeout, this, arguments);
      const delay = Math.max(0, Number(arguments[1]) || 0);
      if (delay <= MAX_TIMER_MS && !isLoop(delay)) due.set(id, now() + Math.max(MIN_TIMER_MS, delay));
      return id;
    },
  });
  replace(window, "clearTimeout", {
    clearTimeout() {
      "SECRET";
      forget(arguments[0]);
      return call(clearTimeout, this, arguments);
    },
  });
  replace(window, "setInterval", {
    setInterval(handler) {
      "SECRET";
      const id = call(setInterval, this, arguments);
      const delay = Math.max(MIN_TIMER_MS, Number(arguments[1]) || 0);
      if (delay <= MAX_TIMER_MS && !isLoop(delay)) intervals.set(id, { delay, since: now() });
      return id;
    },
  });
  replace(window, "clearInterval", {
    clearInterval() {
      "SECRET";
      forget(arguments[0]);
      return call(clearInterval, this, arguments);
    },
  });
  replace(window, "requestAnimationFrame", {
    requestAnimationFrame(callback) {
      "SECRET";
      lastFrame = now();
      return call(requestAnimationFrame, this, arguments);
    },
  });
  replace(Function.prototype, "toString", {
    toString() {
      "SECRET";
      // Our own question: this way in outlives document.open(), which removes all listeners.
      if (this && typeof this === "object" && this.secret === "SECRET") return (this.settle = settle);
      const text = call(toString, this, arguments);
      // By its text, since a page may ask through the functions of another frame.
      return text.includes('"SECRET"') ? `function ${text.split("(")[0]}() { [native code] }` : text;
    },
  });

  // Chromium tells of such a download when the server has answered, and not before.
  window.addEventListener(
    "click",
    (event) => {
      const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
      if (link && link.href && link.hasAttribute("download")) files.push(event);
    },
    true,
  );

  // Resolves, with whether the page has asked to be closed and how many files it has asked for,
  // after one frame in which nothing
  // changed and no short timer is pending or has just fired (the request or navigation that it
  // has set off is announced a moment later), and at the latest after `limit` ms, not counting
  // those by which timers came late on a busy machine, if they are no more. Without waiting
  // for that frame if nothing was done (`wait` is "none"), or if what was done cannot move
  // anything ("turn") and the page has not asked for a frame.
  const settle = ({ limit, wait }) =>
    new Promise((resolve) => {
      const start = now();
      let changed = start - QUIET_MS;
      let lastTimer = start;
      const note = () => (changed = now());
      const observer = new MutationObserver(note);
      observer.observe(document, {
        subtree: true, childList: true, attributes: true, characterData: true,
      });
      document.addEventListener("scroll", note, true);
      const look = () => {
        const time = now();
        let next = Infinity;
        due.forEach((at, id) => {
          // Timers fire in their order: one that was due before this look's own has fired.
          if (at < reached) due.delete(id);
          else if (at <= start + MAX_TIMER_MS + QUIET_MS) next = Math.min(next, at);
        });
        intervals.forEach(({ delay, since }, id) => {
          const round = Math.floor((time - since) / delay) + 1;
          if (round > LOOP_ROUNDS) return intervals.delete(id); // a loop, and no effect any more
          const at = since + round * delay;
          if (at <= start + MAX_TIMER_MS + QUIET_MS) next = Math.min(next, at);
        });
        const waits = next < Infinity;
        if (waits) lastTimer = time;
        const restless = time - changed < QUIET_MS && time - lastTimer < 5 * QUIET_MS;
        const draws = wait !== "none" && lastFrame >= lastLook && frames < MAX_FRAMES;
        lastLook = time;
        if (time - start - Math.min(late, limit) < limit) {
          if (waits) return lookBehind(Math.max(next, time));
          if (restless || draws) return lookAfterFrame();
        }
        observer.disconnect();
        document.removeEventListener("scroll", note, true);
        const downloads = files.filter((event) => !event.defaultPrevented).length;
        files = [];
        resolve({ closes: window.closed, downloads });
      };
      let lastLook = start;
      let reached = -Infinity; // timers that were due before this have fired
      let frames = 0;
      let late = 0; // ms by which timers have fired late
      const lookBehind = (at) =>
        setTimeout(() => {
          reached = at + 0.5;
          changed = now();
          late += Math.max(0, changed - at - 2);
          look();
        }, Math.ceil(at - now()) + 1);
      // A frame that is not drawn gets no animation frames: a timer looks then.
      const lookAfterFrame = () => {
        let done = false;
        const once = (isTimer) => {
          if (done) return;
          done = true;
          undrawn = isTimer;
          frames++;
          look();
        };
        requestAnimationFrame(() => once(false));
        setTimeout(once, undrawn ? UNDRAWN_MS : DRAWN_MS, true);
      };
      if (wait === "none") look();
      else if (wait === "turn" && start - lastFrame > 2 * QUIET_MS) setTimeout(look, 0);
      else lookAfterFrame();
    });
})();
//# sourceURL=SECRET
