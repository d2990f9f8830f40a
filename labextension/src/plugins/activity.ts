import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';

import { isCard, matches, type ICard } from '../events/card.js';
import { CommandIDs } from '../ids.js';
import { LiveOutputs } from '../cells/liveoutput.js';
import { actionMagic } from '../log/magic.js';
import { actionJson, findStoppable } from '../log/stoppable.js';
import { copyCommand, TOAST } from '../notify.js';
import { IOhRuntime, type IActivity } from '../tokens.js';
import { trans } from '../translation.js';
import {
  argsOf,
  definePlugin,
  eventArgs,
  listCommands,
  notifyFailure
} from './registration.js';

const EVENT = 'Id of the action; by default, the last one that qualifies.';
const GENERATION = 'Generation of the runtime to which the id belongs.';

const EVENT_ARGS = eventArgs(EVENT, GENERATION, {});

const COPY_ARGS = eventArgs(EVENT, GENERATION, {
  form: {
    type: 'string',
    enum: ['json', 'magic'],
    default: 'json',
    description: 'JSON as agents send it, or code of a cell that repeats it.'
  }
});

const CONNECT_ARGS = argsOf({
  client: {
    type: 'string',
    default: 'claude',
    description: 'Program whose agent is to work in the notebook.'
  }
});

/** Commands that stop or copy an action or connect an agent, and live output in cells. */
export const activityPlugin = definePlugin({
  id: 'oh-jupyter:activity',
  description: 'Stops and copies actions, and connects agents.',
  requires: [IOhRuntime, INotebookTracker],
  optional: [ICommandPalette],
  activate: (app, runtime, notebooks, palette) => {
    addStop(app, runtime);
    addCopy(app, runtime);
    addConnect(app, notebooks);
    new LiveOutputs(runtime, notebooks);
    listCommands(palette, CommandIDs.stop, CommandIDs.connectAgent);
  }
});

function addStop(app: JupyterFrontEnd, runtime: IOhRuntime): void {
  app.commands.addCommand(CommandIDs.stop, {
    label: trans.__('Agent: Stop the Running Action'),
    caption: trans.__('Interrupt the running command or cell'),
    describedBy: EVENT_ARGS,
    isEnabled: () => stoppable(runtime.shown).length > 0,
    execute: async args => {
      const events = runtime.shown;
      const card = lastMatch(stoppable(events), args);
      try {
        await (card && events?.stop(card));
        return card !== undefined;
      } catch (error) {
        notifyFailure(error);
        return false;
      }
    }
  });
}

function addCopy(app: JupyterFrontEnd, runtime: IOhRuntime): void {
  app.commands.addCommand(CommandIDs.copyAction, {
    label: trans.__('Agent: Copy Action'),
    caption: trans.__(
      'Copy the action as JSON for execute_action or as a cell'
    ),
    describedBy: COPY_ARGS,
    execute: async args => {
      const events = runtime.shown;
      const find = () =>
        lastMatch(
          cardsOf(events).filter(({ action }) => action),
          args
        );
      const card = find();
      if (!events || !card) {
        return false;
      }
      // Copy the full action if it is still available, not the clipped one.
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

function addConnect(app: JupyterFrontEnd, notebooks: INotebookTracker): void {
  app.commands.addCommand(CommandIDs.connectAgent, {
    label: trans.__('Agent: Copy the Command That Connects Mine'),
    caption: trans.__(
      'Run it in a terminal to give an agent the tools of this notebook'
    ),
    describedBy: CONNECT_ARGS,
    isEnabled: () => notebooks.currentWidget !== null,
    execute: args => {
      const path = notebooks.currentWidget?.context.localPath;
      if (path === undefined) {
        return '';
      }
      const client = typeof args.client === 'string' ? args.client : 'claude';
      const command = `oh-jupyter connect ${client} --notebook ${quoted(path)}`;
      copyCommand(command);
      return command;
    }
  });
}

/** Quote a word for a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replace(/'/g, `'"'"'`)}'`;
}

function cardsOf(events: IActivity | null): readonly ICard[] {
  return (events?.entries ?? []).filter(isCard);
}

function stoppable(events: IActivity | null): readonly ICard[] {
  const keys = findStoppable(events?.entries ?? []);
  return cardsOf(events).filter(({ key }) => keys.has(key));
}

function lastMatch(
  cards: readonly ICard[],
  args: { event?: unknown; generation?: unknown }
): ICard | undefined {
  return cards.filter(card => matches(card, args)).at(-1);
}
