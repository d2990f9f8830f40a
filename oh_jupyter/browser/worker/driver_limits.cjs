// Loaded into Playwright's driver before it begins: lets it remember fewer objects.
//
// The driver keeps the last 10,000 requests, answers and frames, and so does its client, at
// about 17 KB for each three: on pages with many requests that is hundreds of megabytes. This
// is the switch that Playwright's own tests use for the same; where it is missing, all stays
// as it was.
//
// Its new objects get a heap that does not grow from step to step: 70 MB instead of 98 after large
// pages, for 30 ms of processor time at each of these. (Flags of Chromium save less than they cost.)
"use strict";
require("node:v8").setFlagsFromString("--semi-space-growth-factor=1");
const { dirname, join } = require("node:path");

const LIMIT = 1000;
const PLACES = ["lib/coreBundle.js", "lib/server/dispatchers/dispatcher.js"];

// Once the driver has loaded its modules, so that nothing is loaded in another order.
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
