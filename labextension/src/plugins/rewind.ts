import {
  Dialog,
  ICommandPalette,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { Kernel } from '@jupyterlab/services';

import {
  contentsOf,
  type ChangeKind,
  type Contents
} from '../changes/changes.js';
import type { IPathChange } from '../control/operations.js';
import { askKernel } from '../control/request.js';
import { CommandIDs } from '../ids.js';
import { TOAST } from '../notify.js';
import { CheckpointsApi } from '../rewind/checkpoints.js';
import { RewindBody, type IChoice } from '../rewind/dialog.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  argsOf,
  definePlugin,
  labels,
  listCommands,
  notifyFailure
} from './registration.js';

const REWIND_ARGS = argsOf({
  checkpoint: {
    type: 'integer',
    description: 'Checkpoint to choose first; by default, the last turn.'
  }
});

/** Undo of one or several turns of agents. */
export const rewindPlugin = definePlugin({
  id: 'oh-jupyter:rewind',
  description: 'Undoes turns of agents in the workspace of a notebook.',
  requires: [IOhRuntime],
  optional: [ICommandPalette, IEditorLanguageRegistry],
  activate: (app, runtime, palette, languages) => {
    const api = new CheckpointsApi(app.serviceManager.serverSettings);
    const current = () => runtime.current?.sessionContext.session?.kernel;
    app.commands.addCommand(CommandIDs.rewind, {
      label: labels(trans.__('Undo turns…'), trans.__('Agent: Undo Turns…')),
      caption: trans.__(
        'Restore the files to their state before an agent’s turn'
      ),
      describedBy: REWIND_ARGS,
      isEnabled: () => !!current(),
      execute: async ({ checkpoint }) => {
        const kernel = current();
        if (!kernel) {
          return false;
        }
        try {
          return await chooseAndRewind(
            api,
            kernel,
            languages,
            typeof checkpoint === 'number' ? checkpoint : null
          );
        } catch (error) {
          notifyFailure(error);
          return false;
        }
      }
    });
    listCommands(palette, CommandIDs.rewind);
  }
});

/** Ask the person what to undo, undo it, and return whether that was done. */
async function chooseAndRewind(
  api: CheckpointsApi,
  kernel: Kernel.IKernelConnection,
  languages: IEditorLanguageRegistry | null,
  chosen: number | null
): Promise<boolean> {
  const list = await api.list(kernel.id);
  if (list.checkpoints.length === 0) {
    Notification.info(
      list.problem
        ? trans.__('Nothing to undo: %1', list.problem)
        : trans.__('Nothing to undo: no agent has worked here yet.'),
      TOAST
    );
    return false;
  }
  const body = new RewindBody(list, chosen, {
    plan: ({ id, everything }) =>
      api.rewind(kernel.id, id, { everything, preview: true }),
    contents: (choice, change) => compare(kernel, choice, change),
    languages
  });
  const { button, value } = await showDialog({
    title: trans.__('Undo everything since…'),
    body,
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({ label: trans.__('Undo') })
    ]
  });
  if (!button.accept || value === null) {
    return false;
  }
  const { id, everything } = value;
  const plan = await api.rewind(kernel.id, id, { everything, preview: false });
  const restored = trans._n(
    'Restored %1 file.',
    'Restored %1 files.',
    plan.changes.length
  );
  const count = plan.variables.filter(({ outcome }) =>
    ['restored', 'rebound', 'removed'].includes(outcome)
  ).length;
  const variables = count
    ? [trans._n('Restored %1 variable.', 'Restored %1 variables.', count)]
    : [];
  const unchanged = Object.keys(plan.kept).map(path =>
    trans.__('%1 was left unchanged.', path)
  );
  const message = [restored, ...variables, ...unchanged, ...plan.notes].join(
    ' '
  );
  Notification.success(message, TOAST);
  return true;
}

/** Both versions of a file that a rewind would change: as it is now, and after. */
async function compare(
  kernel: Kernel.IKernelConnection,
  choice: IChoice,
  { path, kind }: IPathChange
): Promise<Contents> {
  const { id, everything } = choice;
  const request = { op: 'rewind_change', path, id, everything } as const;
  const reply = await askKernel(kernel, request);
  const kinds: Record<string, ChangeKind> = {
    create: 'created',
    delete: 'deleted'
  };
  return contentsOf(reply, { path, kind: kinds[kind] ?? 'changed' });
}
