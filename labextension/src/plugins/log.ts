import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { LogPanel, PANEL_ID } from '../log/panel.js';
import { IOhRuntime } from '../tokens.js';
import { followSettings } from './registration.js';

const ID = 'oh-jupyter:log';

/** Shows the events in the right sidebar. */
export const logPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description:
    'A sidebar panel that lists the actions and observations of the notebook in front.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [ITranslator, ILayoutRestorer, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    settings: ISettingRegistry | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    const panel = new LogPanel(runtime, app.commands, trans);
    app.shell.add(panel, 'right', { rank: 900, type: 'OpenHands' });
    restorer?.add(panel, PANEL_ID);
    void followSettings(settings, ID, found => {
      runtime.limit = found.get('limit').composite as number;
      panel.follow = found.get('follow').composite as boolean;
    });
  }
};
