import { ICommandPalette } from '@jupyterlab/apputils';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { PANEL_ID } from '../log/panel.js';
import { trans } from '../translation.js';
import { definePlugin, listCommands, NO_ARGS } from './registration.js';

/** Command that shows the log panel. */
export const commandsPlugin = definePlugin({
  id: 'oh-jupyter:commands',
  description: 'Adds the command that shows the log of actions.',
  requires: [],
  optional: [ICommandPalette],
  activate: (app, palette) => {
    app.commands.addCommand(CommandIDs.showLog, {
      label: trans.__('OpenHands Log'),
      caption: trans.__('Show what you and the agent did in this kernel'),
      icon: ohIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(PANEL_ID)
    });
    listCommands(palette, CommandIDs.showLog);
  }
});
