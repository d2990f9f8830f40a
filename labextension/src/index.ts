import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { activityPlugin } from './plugins/activity.js';
import { browserPlugin } from './plugins/browser.js';
import { cellsPlugin } from './plugins/cells.js';
import { changesPlugin } from './plugins/changes.js';
import { confirmPlugin } from './plugins/confirm.js';
import { deliveriesPlugin } from './plugins/deliveries.js';
import { documentsPlugin } from './plugins/documents.js';
import { eventsPlugin } from './plugins/events.js';
import { logPlugin } from './plugins/log.js';
import { launcherPlugin } from './plugins/launcher.js';
import { picturesPlugin } from './plugins/pictures.js';
import { reviewPlugin } from './plugins/review.js';
import { rewindPlugin } from './plugins/rewind.js';
import { storePlugin } from './plugins/store.js';
import { runningPlugin } from './plugins/running.js';
import { trustPlugin } from './plugins/trust.js';

export * from './tokens.js';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  eventsPlugin,
  logPlugin,
  activityPlugin,
  cellsPlugin,
  confirmPlugin,
  documentsPlugin,
  picturesPlugin,
  trustPlugin,
  reviewPlugin,
  rewindPlugin,
  browserPlugin,
  changesPlugin,
  deliveriesPlugin,
  storePlugin,
  runningPlugin,
  launcherPlugin
];

export default plugins;
