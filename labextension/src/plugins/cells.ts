import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { CellAdder, findCard } from '../cells/adder.js';
import { CellFollower } from '../cells/follower.js';
import { reasonOf } from '../events/errors.js';
import { CommandIDs } from '../ids.js';
import { TOAST } from '../notify.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  definePlugin,
  eventArgs,
  followSettings,
  listCommands
} from './registration.js';

/** The log panel's settings contain the one of this plugin. */
const SETTINGS = 'oh-jupyter:log';

const ARGS = eventArgs(
  'Id of the run_ipython action; by default, the last one of the current notebook.',
  'Generation of the runtime to which the id belongs; by default, the last one that has the id.',
  {}
);

/** Adds cells that an agent ran to the notebook, on request or automatically. */
export const cellsPlugin = definePlugin({
  id: 'oh-jupyter:cells',
  description: "Adds the agent's cells to the current notebook.",
  requires: [IOhRuntime, INotebookTracker],
  optional: [ICommandPalette, ISettingRegistry],
  activate: (app, runtime, notebooks, palette, settings) => {
    const adder = new CellAdder(notebooks);
    app.commands.addCommand(CommandIDs.addCell, {
      label: trans.__('Agent: Add Its Cell to the Notebook'),
      caption: trans.__(
        'Append code that ran in this kernel, with its output, as a cell, or show its cell if there is one'
      ),
      describedBy: { args: ARGS },
      isEnabled: () => adder.notebookOf(runtime.current) !== null,
      execute: async args => {
        const events = runtime.current;
        const card = events && findCard(events, args);
        if (!card) {
          const message = trans.__('No such cell ran in this kernel.');
          Notification.warning(message, TOAST);
          return false;
        }
        return adder.add(events, card, true).catch(error => {
          notify(error);
          return false;
        });
      }
    });
    listCommands(palette, CommandIDs.addCell);
    const follower = new CellFollower(runtime, adder, notify);
    void followSettings(settings, SETTINGS, current => {
      follower.isEnabled = current.get('appendAgentCells').composite as boolean;
    });
  }
});

function notify(error: unknown): void {
  const message = trans.__('The cell was not added. %1', reasonOf(error));
  Notification.error(message, TOAST);
}
