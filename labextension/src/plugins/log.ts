import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { LogPanel, PANEL_ID } from '../log/panel.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  definePlugin,
  followSettings,
  listCommands,
  NO_ARGS
} from './registration.js';

const ID = 'oh-jupyter:log';

/** Log of events in the right sidebar. */
export const logPlugin = definePlugin({
  id: ID,
  description:
    'Adds a sidebar panel with the actions and observations of the current notebook.',
  requires: [IOhRuntime],
  optional: [ICommandPalette, ILayoutRestorer, ISettingRegistry],
  activate: (app, runtime, palette, restorer, settings) => {
    const panel = new LogPanel(runtime, app.commands);
    app.shell.add(panel, 'right', { rank: 900, type: 'OpenHands' });
    restorer?.add(panel, PANEL_ID);
    app.commands.addCommand(CommandIDs.showLog, {
      label: trans.__('OpenHands Log'),
      caption: trans.__('Show what you and the agent did in this kernel'),
      icon: ohIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(PANEL_ID)
    });
    listCommands(palette, CommandIDs.showLog);
    void followSettings(settings, ID, current => {
      runtime.limit = current.get('limit').composite as number;
      panel.follow = current.get('follow').composite as boolean;
    });
  }
});
