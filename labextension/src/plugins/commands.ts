import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { PANEL_ID } from '../log/panel.js';
import { listCommands, NO_ARGS } from './registration.js';

/** Registers the command that shows the panel, and lists it in the palette. */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:commands',
  description: 'Commands to reach the panel of actions and observations.',
  autoStart: true,
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    app.commands.addCommand(CommandIDs.showLog, {
      label: trans.__('OpenHands Log'),
      caption: trans.__('Show what the agent and you did in this kernel'),
      icon: ohIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(PANEL_ID)
    });
    listCommands(palette, trans, CommandIDs.showLog);
  }
};
