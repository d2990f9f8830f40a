import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';

import { findWaiting } from '../confirm/find.js';
import { isFullyShown } from '../confirm/labels.js';
import { WaitingNotifier } from '../confirm/notifier.js';
import type { IVerdict } from '../events/api.js';
import type { ICard } from '../events/card.js';
import { CommandIDs } from '../ids.js';
import { isRecord } from '../events/wire.js';
import { TOAST } from '../notify.js';
import { IOhRuntime, type IActivity } from '../tokens.js';
import { trans } from '../translation.js';
import { definePlugin, eventArgs, listCommands } from './registration.js';

const ARGS = eventArgs(
  'Id of the action; by default, the only pending one of the current notebook.',
  'Generation of the runtime to which the id belongs; by default, the current one.',
  {
    why: {
      type: 'string',
      description: 'For a rejection: the reason for the agent.'
    },
    forSession: {
      type: 'boolean',
      default: false,
      description:
        'For an approval: later actions of the same type that need approval for the same reasons start at once.'
    },
    forWorkspace: {
      type: 'boolean',
      default: false,
      description:
        'For an approval: the same, in all later sessions in this workspace.'
    },
    values: {
      type: 'object',
      default: {},
      description: "Answers to an agent's question by field."
    }
  }
);

/** Approval and rejection of pending actions, by command or from a notification. */
export const confirmPlugin = definePlugin({
  id: 'oh-jupyter:confirm',
  description: 'Approves or rejects the actions that wait for a person.',
  requires: [IOhRuntime],
  optional: [ICommandPalette],
  activate: (app, runtime, palette) => {
    addCommands(app, runtime);
    listCommands(palette, CommandIDs.approve, CommandIDs.reject);
    new WaitingNotifier(runtime, {
      decide: (events, card, verdict) => void decide(events, card, verdict),
      show: events => show(app, events)
    });
  }
});

function addCommands(app: JupyterFrontEnd, runtime: IOhRuntime): void {
  const add = (id: string, approve: boolean, label: string, caption: string) =>
    app.commands.addCommand(id, {
      label,
      caption,
      describedBy: ARGS,
      isEnabled: () => (runtime.shown?.waiting.length ?? 0) > 0,
      execute: async args => {
        const events = runtime.shown;
        const card = events && findWaiting(events, args);
        if (!card) {
          if (events && events.waiting.length > 1) {
            show(app, events);
          } else {
            notifyNotWaiting();
          }
          return false;
        }
        const isSeen = events.isShown || isFullyShown(card, events.name);
        if (approve && !isSeen) {
          show(app, events);
          return false;
        }
        const why = typeof args.why === 'string' ? args.why : '';
        return decide(events, card, {
          approve,
          why,
          values: isRecord(args.values)
            ? (args.values as NonNullable<IVerdict['values']>)
            : {},
          forSession: args.forSession === true,
          forWorkspace: args.forWorkspace === true
        });
      }
    });
  add(
    CommandIDs.approve,
    true,
    trans.__('Agent: Approve the Pending Action'),
    trans.__('Start the action that waits in this notebook')
  );
  add(
    CommandIDs.reject,
    false,
    trans.__('Agent: Reject the Pending Action'),
    trans.__('Do not run the action that waits in this notebook')
  );
}

/** Return whether the kernel has the decision; the card shows an error otherwise. */
async function decide(
  events: IActivity,
  card: ICard,
  verdict: IVerdict
): Promise<boolean> {
  const decision = await events.decide(card, verdict);
  if (decision === 'gone') {
    notifyNotWaiting();
  }
  return decision === 'done';
}

function notifyNotWaiting(): void {
  const message = trans.__('This action is not waiting for your decision.');
  Notification.info(message, TOAST);
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
