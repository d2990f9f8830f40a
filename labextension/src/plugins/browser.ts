import { BrowserModel } from '../browser/model.js';
import { BrowserPanel, browserIcon } from '../browser/panel.js';
import { CommandIDs } from '../ids.js';
import { inTab, tabPlugin } from './registration.js';

/** Shows the page that agents see, to look at it and to use it. */
export const browserPlugin = tabPlugin(
  'oh-jupyter:browser',
  'A tab with the live page of the browser in a kernel.',
  (runtime, trans) => ({
    command: CommandIDs.showBrowser,
    name: 'browser',
    options: {
      label: trans.__('OpenHands Browser'),
      caption: trans.__('Watch the page that agents see, and use it'),
      icon: browserIcon
    },
    create: () => {
      const panel = new BrowserPanel(new BrowserModel(runtime), trans);
      return inTab(panel, 'browser', trans.__('Browser'), browserIcon);
    }
  })
);
