import { ILayoutRestorer } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { LogPanel, PANEL_ID } from '../log/panel.js';
import { IOhRuntime } from '../tokens.js';
import { definePlugin, followSettings } from './registration.js';

const ID = 'oh-jupyter:log';

/** Log of events in the right sidebar. */
export const logPlugin = definePlugin({
  id: ID,
  description:
    'Adds a sidebar panel with the actions and observations of the current notebook.',
  requires: [IOhRuntime],
  optional: [ILayoutRestorer, ISettingRegistry],
  activate: (app, runtime, restorer, settings) => {
    const panel = new LogPanel(runtime, app.commands);
    app.shell.add(panel, 'right', { rank: 900, type: 'OpenHands' });
    restorer?.add(panel, PANEL_ID);
    void followSettings(settings, ID, current => {
      runtime.limit = current.get('limit').composite as number;
      panel.follow = current.get('follow').composite as boolean;
    });
  }
});
