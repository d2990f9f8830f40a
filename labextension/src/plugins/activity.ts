import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Clipboard, ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { isCard, type ICard } from '../events/card.js';
import { CommandIDs } from '../ids.js';
import { LiveCells } from '../log/live.js';
import { actionMagic } from '../log/magic.js';
import { actionJson, findStoppable } from '../log/stoppable.js';
import { IOhRuntime, type IActivity } from '../tokens.js';
import { eventArgs, listCommands, tellFailure, TOAST } from './registration.js';

const EVENT = 'Id of the action; without it, the last one that fits.';
const GENERATION = 'The life of the runtime to which the id belongs.';

const EVENT_ARGS = eventArgs(EVENT, GENERATION, {});

const COPY_ARGS = eventArgs(EVENT, GENERATION, {
  form: {
    type: 'string',
    enum: ['json', 'magic'],
    default: 'json',
    description: 'As agents send it, or as a cell that does it again.'
  }
});

const CONNECT_ARGS = {
  type: 'object',
  properties: {
    client: {
      type: 'string',
      default: 'claude',
      description: 'The program whose agent is to work in the notebook.'
    }
  },
  additionalProperties: false
} as const;

/** What a person does with an action that is not a decision: stop it, copy it, have one made. */
export const activityPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:activity',
  description: 'Stops and copies actions, and tells how an agent gets here.',
  autoStart: true,
  requires: [IOhRuntime, INotebookTracker],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    notebooks: INotebookTracker,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addStop(app, runtime, trans);
    addCopy(app, runtime, trans);
    addConnect(app, notebooks, trans);
    new LiveCells(runtime, notebooks, trans);
    listCommands(palette, trans, CommandIDs.stop, CommandIDs.connectAgent);
  }
};

function addStop(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.stop, {
    label: trans.__('Stop What the Agent Does'),
    caption: trans.__('Interrupt the command or cell that runs'),
    describedBy: { args: EVENT_ARGS },
    isEnabled: () => stoppable(runtime.shown).length > 0,
    execute: async args => {
      const events = runtime.shown;
      const card = chosen(stoppable(events), args);
      try {
        await (card && events?.stop(card));
        return card !== undefined;
      } catch (error) {
        tellFailure(error);
        return false;
      }
    }
  });
}

function addCopy(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.copyAction, {
    label: trans.__('Copy the Action'),
    caption: trans.__(
      'Copy what was asked for, as execute_action takes it or as a cell'
    ),
    describedBy: { args: COPY_ARGS },
    execute: async args => {
      const events = runtime.shown;
      const find = () =>
        chosen(
          (events?.entries ?? []).filter(isCard).filter(({ action }) => action),
          args
        );
      const card = find();
      if (!events || !card) {
        return false;
      }
      // Half an action is not what was asked for.
      await events.complete(card).catch(() => undefined);
      const copied = find() ?? card;
      Clipboard.copyToSystem(
        args.form === 'magic' ? actionMagic(copied) : actionJson(copied)
      );
      Notification.success(trans.__('Copied.'), TOAST);
      return true;
    }
  });
}

function addConnect(
  app: JupyterFrontEnd,
  notebooks: INotebookTracker,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.connectAgent, {
    label: trans.__('Copy the Command That Connects My Agent'),
    caption: trans.__(
      'Run it in a terminal: it gives an agent the tools of this notebook'
    ),
    describedBy: { args: CONNECT_ARGS },
    isEnabled: () => notebooks.currentWidget !== null,
    execute: args => {
      const path = notebooks.currentWidget?.context.localPath;
      if (path === undefined) {
        return '';
      }
      const client = typeof args.client === 'string' ? args.client : 'claude';
      const command = `oh-jupyter connect ${client} --notebook ${quoted(path)}`;
      Clipboard.copyToSystem(command);
      Notification.success(trans.__('Copied: %1', command), TOAST);
      return command;
    }
  });
}

/** A word for a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replace(/'/g, `'"'"'`)}'`;
}

function stoppable(events: IActivity | null): readonly ICard[] {
  const entries = events?.entries ?? [];
  const keys = findStoppable(entries);
  return entries.filter(isCard).filter(({ key }) => keys.has(key));
}

/** The card that is meant: by its id, or the last one. */
function chosen(
  cards: readonly ICard[],
  wanted: { event?: unknown; generation?: unknown }
): ICard | undefined {
  return cards
    .filter(
      ({ id, generation }) =>
        id === (wanted.event ?? id) &&
        generation === (wanted.generation ?? generation)
    )
    .at(-1);
}
