import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { CellAdder, findCard } from '../cells/adder.js';
import { CellFollower } from '../cells/follower.js';
import { reasonOf } from '../events/errors.js';
import { CommandIDs } from '../ids.js';
import { IOhRuntime } from '../tokens.js';
import {
  eventArgs,
  followSettings,
  listCommands,
  TOAST
} from './registration.js';

/** The panel's settings, of which this is one. */
const SETTINGS = 'oh-jupyter:log';

const ARGS = eventArgs(
  'Id of the run_ipython action; without it, the last one of the notebook in front.',
  'The life of the runtime to which the id belongs; without it, the last one that has the id.',
  {}
);

/** Makes what the agent ran a part of the notebook: on request, or by itself. */
export const cellsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:cells',
  description: "Adds the agent's cells to the notebook in front.",
  autoStart: true,
  requires: [IOhRuntime, INotebookTracker],
  optional: [ITranslator, ICommandPalette, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    const adder = new CellAdder(notebooks);
    const onFailure = (error: unknown) => notify(error, trans);
    addCommand(app, runtime, adder, trans, onFailure);
    listCommands(palette, trans, CommandIDs.addCell);
    const follower = new CellFollower(runtime, adder, onFailure);
    void followSettings(settings, SETTINGS, found => {
      follower.isEnabled = found.get('appendAgentCells').composite as boolean;
    });
  }
};

function addCommand(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  adder: CellAdder,
  trans: TranslationBundle,
  onFailure: (error: unknown) => void
): void {
  app.commands.addCommand(CommandIDs.addCell, {
    label: trans.__('Add the Agent’s Cell to the Notebook'),
    caption: trans.__(
      'Append code that ran in this kernel, with its output, as a cell; or show the cell, where there is one'
    ),
    describedBy: { args: ARGS },
    isEnabled: () => adder.notebookOf(runtime.current) !== null,
    execute: async args => {
      const events = runtime.current;
      const card = events && findCard(events, args);
      if (!card) {
        Notification.warning(
          trans.__('No such cell ran in this kernel.'),
          TOAST
        );
        return false;
      }
      return adder.add(events, card, true).catch(error => {
        onFailure(error);
        return false;
      });
    }
  });
}

function notify(error: unknown, trans: TranslationBundle): void {
  Notification.error(
    trans.__('The cell was not added. %1', reasonOf(error)),
    TOAST
  );
}
