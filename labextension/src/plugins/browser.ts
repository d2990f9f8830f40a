import { BrowserModel } from '../browser/model.js';
import { BrowserPanel } from '../browser/panel.js';
import { CommandIDs } from '../ids.js';
import { browserIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import { inTab, tabPlugin } from './registration.js';

/** Tab that shows the page agents see and lets a person use it. */
export const browserPlugin = tabPlugin(
  'oh-jupyter:browser',
  'Adds a tab with the live page of the browser in a kernel.',
  runtime => ({
    command: CommandIDs.showBrowser,
    name: 'browser',
    options: {
      label: trans.__('OpenHands Browser'),
      caption: trans.__('Watch and use the page that agents see'),
      icon: browserIcon
    },
    create: () => {
      const panel = new BrowserPanel(new BrowserModel(runtime));
      return inTab(panel, 'browser', trans.__('Browser'), browserIcon);
    }
  })
);
