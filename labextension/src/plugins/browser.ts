import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { BrowserModel } from '../browser/model.js';
import { BrowserPanel, browserIcon } from '../browser/panel.js';
import { CommandIDs } from '../ids.js';
import { IOhRuntime } from '../tokens.js';
import { addTab } from './registration.js';

/** Shows the page that agents see, to look at it and to use it. */
export const browserPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:browser',
  description: 'A tab with the live page of the browser in a kernel.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [ITranslator, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addTab(app, palette, restorer, trans, {
      command: CommandIDs.showBrowser,
      name: 'browser',
      options: {
        label: trans.__('OpenHands Browser'),
        caption: trans.__('Watch the page that agents see, and use it'),
        icon: browserIcon
      },
      create: () => new BrowserPanel(new BrowserModel(runtime), trans)
    });
  }
};
