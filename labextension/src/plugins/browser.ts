import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { BrowserModel } from '../browser/model.js';
import { BrowserPanel, browserIcon } from '../browser/panel.js';
import { CommandIDs } from '../ids.js';
import { IOhRuntime } from '../tokens.js';

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
    const tracker = new WidgetTracker<BrowserPanel>({
      namespace: 'oh-jupyter-browser'
    });
    app.commands.addCommand(CommandIDs.showBrowser, {
      label: trans.__('OpenHands Browser'),
      caption: trans.__('Watch the page that agents see, and use it'),
      icon: browserIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        let panel = tracker.currentWidget;
        if (panel === null) {
          panel = new BrowserPanel(new BrowserModel(runtime), trans);
          await tracker.add(panel);
          app.shell.add(panel, 'main', { mode: 'split-right' });
        }
        app.shell.activateById(panel.id);
      }
    });
    void restorer?.restore(tracker, {
      command: CommandIDs.showBrowser,
      name: () => 'browser'
    });
    palette?.addItem({
      command: CommandIDs.showBrowser,
      category: trans.__('OpenHands')
    });
  }
};
