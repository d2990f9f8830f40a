import { BrowserModel } from '../browser/model.js';
import { BrowserPanel } from '../browser/panel.js';
import { CommandIDs } from '../ids.js';
import { browserIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import { tabPlugin } from './registration.js';

/** Tab that shows the page agents see and lets a person use it. */
export const browserPlugin = tabPlugin(
  'oh-jupyter:browser',
  'Adds a tab with the live page of the browser in a kernel.',
  runtime => ({
    command: CommandIDs.showBrowser,
    name: 'browser',
    title: trans.__('Browser'),
    label: trans.__('Agent: Browser'),
    caption: trans.__('Watch and use the page that agents see'),
    icon: browserIcon,
    isBeside: true,
    create: () => new BrowserPanel(new BrowserModel(runtime))
  })
);
