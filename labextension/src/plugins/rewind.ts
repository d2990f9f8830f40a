import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { CommandIDs } from '../ids.js';
import { CheckpointsApi } from '../rewind/checkpoints.js';
import { RewindBody } from '../rewind/dialog.js';
import { IOhRuntime } from '../tokens.js';
import { listCommands, NO_ARGS, tellFailure, TOAST } from './registration.js';

/** Takes back what agents did, one turn or several. */
export const rewindPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:rewind',
  description: 'Undoes the turns of agents in the workspace of a notebook.',
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
    const api = new CheckpointsApi(app.serviceManager.serverSettings);
    const kernel = () => runtime.current?.sessionContext.session?.kernel?.id;
    app.commands.addCommand(CommandIDs.rewind, {
      label: trans.__('Undo What an Agent Did…'),
      caption: trans.__('Bring the files back to before a turn of an agent'),
      describedBy: NO_ARGS,
      isEnabled: () => kernel() !== undefined,
      execute: async () => {
        const kernelId = kernel();
        if (kernelId === undefined) {
          return false;
        }
        try {
          return await chooseAndRewind(api, kernelId, trans);
        } catch (error) {
          tellFailure(error);
          return false;
        }
      }
    });
    listCommands(palette, trans, CommandIDs.rewind);
  }
};

/** Ask a person what to undo, and undo it; whether that was done. */
async function chooseAndRewind(
  api: CheckpointsApi,
  kernelId: string,
  trans: TranslationBundle
): Promise<boolean> {
  const checkpoints = await api.list(kernelId);
  if (checkpoints.entries.length === 0) {
    Notification.info(
      checkpoints.problem
        ? trans.__('There is nothing to undo: %1', checkpoints.problem)
        : trans.__('No agent has had a turn here yet.'),
      TOAST
    );
    return false;
  }
  const body = new RewindBody(
    checkpoints,
    ({ id, everything }) =>
      api.rewind(kernelId, id, { everything, preview: true }),
    trans
  );
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
  const plan = await api.rewind(kernelId, id, { everything, preview: false });
  Notification.success(
    [
      trans._n(
        '%1 file is as it was.',
        '%1 files are as they were.',
        plan.changes.length
      ),
      ...plan.kept.map(([path]) => trans.__('%1 stays as it is.', path)),
      ...plan.notes
    ].join(' '),
    TOAST
  );
  return true;
}
