// Loaded into Playwright's driver before it starts, to limit the objects that it remembers.
//
// The driver and its client keep the last 10,000 requests, responses and frames, at about 17 KB
// for each three: hundreds of megabytes on pages with many requests. Playwright's own tests use
// this switch for the same purpose; if it is missing, nothing changes.
//
// The heap for new objects does not grow from step to step: 70 MB instead of 98 after large
// pages, for 30 ms of processor time on each. (Flags of Chromium save less than they cost.)
"use strict";
require("node:v8").setFlagsFromString("--semi-space-growth-factor=1");
const { dirname, join } = require("node:path");

const LIMIT = 1000;
const PLACES = ["lib/coreBundle.js", "lib/server/dispatchers/dispatcher.js"];

// Run after the driver has loaded its modules, to keep their load order.
setImmediate(() => {
  const root = dirname(process.argv[1] || "");
  for (const place of PLACES) {
    try {
      const module = require(join(root, place));
      (module.server || module).setMaxDispatchersForTest(LIMIT);
      return;
    } catch {}
  }
});
