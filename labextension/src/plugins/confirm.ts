import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { findWaiting } from '../confirm/find.js';
import { isWhollyShown } from '../confirm/labels.js';
import { WaitingNotifier } from '../confirm/notifier.js';
import type { IVerdict } from '../events/api.js';
import type { ICard } from '../events/card.js';
import { CommandIDs } from '../ids.js';
import { IOhRuntime, type IActivity } from '../tokens.js';
import { eventArgs, listCommands, TOAST } from './registration.js';

const ARGS = eventArgs(
  'Id of the action; without it, the only one that waits in the notebook in front.',
  'The life of the runtime to which the id belongs; without it, the one that is alive.',
  {
    why: {
      type: 'string',
      description: 'For a rejection: what the agent is told.'
    },
    forSession: {
      type: 'boolean',
      default: false,
      description:
        'For an approval: later actions of the type that wait for the same reasons begin at once.'
    }
  }
);

/** Lets a person decide on what an agent may do: by command, or asked by a notification. */
export const confirmPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:confirm',
  description: 'Approves or rejects the actions that wait for a person.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [ITranslator, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addCommands(app, runtime, trans);
    listCommands(palette, trans, CommandIDs.approve, CommandIDs.reject);
    const buttons = {
      decide: (events: IActivity, card: ICard, verdict: IVerdict) =>
        void decide(events, card, verdict, trans),
      show: (events: IActivity) => show(app, events)
    };
    new WaitingNotifier(runtime, buttons, trans);
  }
};

function addCommands(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  trans: TranslationBundle
): void {
  const add = (id: string, approve: boolean, label: string, caption: string) =>
    app.commands.addCommand(id, {
      label,
      caption,
      describedBy: { args: ARGS },
      isEnabled: () => (runtime.shown?.waiting.length ?? 0) > 0,
      execute: async args => {
        const events = runtime.shown;
        const card = events && findWaiting(events, args);
        if (!card) {
          if (events && events.waiting.length > 1) {
            show(app, events);
          } else {
            tellNothingWaits(trans);
          }
          return false;
        }
        const isSeen =
          events.isShown || isWhollyShown(card, events.name, trans);
        if (approve && !isSeen) {
          show(app, events);
          return false;
        }
        const why = typeof args.why === 'string' ? args.why : '';
        const forSession = args.forSession === true;
        return decide(events, card, { approve, why, forSession }, trans);
      }
    });
  add(
    CommandIDs.approve,
    true,
    trans.__('Approve the Action That Waits'),
    trans.__('Let the action begin that waits in this notebook')
  );
  add(
    CommandIDs.reject,
    false,
    trans.__('Reject the Action That Waits'),
    trans.__('Do not carry out what waits in this notebook')
  );
}

/** Whether the kernel was told; where it was not, the card and its notification say why. */
async function decide(
  events: IActivity,
  card: ICard,
  verdict: IVerdict,
  trans: TranslationBundle
): Promise<boolean> {
  const decision = await events.decide(card, verdict);
  if (decision === 'gone') {
    tellNothingWaits(trans);
  }
  return decision === 'done';
}

function tellNothingWaits(trans: TranslationBundle): void {
  Notification.info(
    trans.__('This action does not wait for you, or not any more.'),
    TOAST
  );
}

function show(app: JupyterFrontEnd, events: IActivity): void {
  for (const widget of app.shell.widgets('main')) {
    if (
      'sessionContext' in widget &&
      'sessionContext' in events &&
      widget.sessionContext === events.sessionContext
    ) {
      app.shell.activateById(widget.id);
    }
  }
  void app.commands.execute(CommandIDs.showLog);
}
