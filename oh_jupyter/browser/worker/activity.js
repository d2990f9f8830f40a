// Runs in every frame before the page's own scripts and tracks pending short timers, so that an
// observation waits only for the effects of an action.
//
// A page cannot detect it: SECRET is a random word of this browser, callbacks and their stack
// traces are the page's own, and replaced functions print the same source as the native ones.
(() => {
  const MAX_TIMER_MS = 400; // ms; longer timers are ignored
  const QUIET_MS = 30; // ms without a change after the last one
  const MAX_FRAMES = 3; // frames to wait for while the page keeps requesting them
  const DRAWN_MS = 500; // ms to wait for the next animation frame on a busy machine
  const UNDRAWN_MS = 50; // ms to wait if the previous frame did not arrive
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
  let undrawn = window !== window.top; // whether animation frames are missing, as far as is known
  let files = []; // clicks on download links since the last settle
  const rounds = new Map(); // delay -> times at which timers of that delay were set

  // Timers with the same delay that start before the first of them fires form one round.
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

  // Stack traces of errors in native functions must not reveal these wrappers.
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
      // The worker's own request: unlike listeners, this survives document.open().
      if (this && typeof this === "object" && this.secret === "SECRET") return (this.settle = settle);
      const text = call(toString, this, arguments);
      // Check the text, since a page may call the function of another frame.
      return text.includes('"SECRET"') ? `function ${text.split("(")[0]}() { [native code] }` : text;
    },
  });

  // Chromium reports such a download only after the server's response.
  window.addEventListener(
    "click",
    (event) => {
      const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
      if (link && link.href && link.hasAttribute("download")) files.push(event);
    },
    true,
  );

  const hasLongText = (chars) => {
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const owner = node.length > chars && node.parentElement;
      if (owner && owner.checkVisibility()) return true;
    }
    return false;
  };

  // Resolves with whether the page requested its close, the number of requested downloads, and
  // whether a visible text has more than `longText` characters.
  // Waits for one frame without a change, a pending short timer, or a timer that just fired (the
  // request or navigation that it started is reported a moment later). Waits at most `limit` ms,
  // plus at most as much again by which timers fired late on a busy machine. Does not wait for
  // the frame if `wait` is "none" (nothing was done), or if it is "turn" (the action moves
  // nothing) and the page has not requested a frame.
  const settle = ({ limit, wait, longText }) =>
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
          // Timers fire in order: those due before this check's own timer have fired.
          if (at < reached) due.delete(id);
          else if (at <= start + MAX_TIMER_MS + QUIET_MS) next = Math.min(next, at);
        });
        intervals.forEach(({ delay, since }, id) => {
          const round = Math.floor((time - since) / delay) + 1;
          if (round > LOOP_ROUNDS) return intervals.delete(id); // a polling loop, not an effect
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
        resolve({ closes: window.closed, downloads, hasLongText: hasLongText(longText) });
      };
      let lastLook = start;
      let reached = -Infinity; // timers that were due before this have fired
      let frames = 0;
      let late = 0; // ms by which timers fired late
      const lookBehind = (at) =>
        setTimeout(() => {
          reached = at + 0.5;
          changed = now();
          late += Math.max(0, changed - at - 2);
          look();
        }, Math.ceil(at - now()) + 1);
      // A hidden frame gets no animation frames, so a timer takes their place.
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
