import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import type { NotebookPanel } from '@jupyterlab/notebook';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { listCommands, NO_ARGS, tellFailure } from './registration.js';

const NEW_ARGS = {
  type: 'object',
  properties: {
    cwd: {
      type: 'string',
      description: 'The folder of the notebook; without it, the root.'
    }
  }
} as const;

/** Ways to a runtime: a card in the launcher, and a command that loads one. */
export const launcherPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:launcher',
  description: 'Opens notebooks with a runtime, and loads one into a kernel.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [ITranslator, ICommandPalette, ILauncher],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addLoad(app, runtime, trans);
    addNewNotebook(app, runtime, trans);
    const category = trans.__('OpenHands');
    listCommands(palette, trans, CommandIDs.load, CommandIDs.newNotebook);
    launcher?.add({ command: CommandIDs.newNotebook, category, rank: 1 });
  }
};

function addLoad(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  trans: TranslationBundle
): void {
  const isMissing = () => runtime.current?.state === 'not-loaded';
  app.commands.addCommand(CommandIDs.load, {
    label: trans.__('Load OpenHands'),
    caption: trans.__('Load a runtime into the kernel of this notebook'),
    icon: ohIcon,
    describedBy: NO_ARGS,
    isEnabled: () => runtime.current !== null,
    isVisible: isMissing,
    execute: async () => {
      try {
        await runtime.current?.load();
        return runtime.current?.state === 'ready';
      } catch (error) {
        tellFailure(error);
        return false;
      }
    }
  });
  let wasMissing = false;
  const tell = () => {
    if (isMissing() !== wasMissing) {
      wasMissing = !wasMissing;
      app.commands.notifyCommandChanged(CommandIDs.load);
    }
  };
  runtime.currentChanged.connect((_, events) => {
    events?.changed.connect(tell);
    tell();
  });
}

function addNewNotebook(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.newNotebook, {
    label: trans.__('Notebook with an Agent'),
    caption: trans.__('A notebook whose kernel is shared with an agent'),
    icon: ohIcon,
    describedBy: { args: NEW_ARGS },
    execute: async ({ cwd }) => {
      const specs = app.serviceManager.kernelspecs.specs;
      const panel = (await app.commands.execute('notebook:create-new', {
        cwd: typeof cwd === 'string' ? cwd : '',
        kernelName: specs?.default ?? ''
      })) as NotebookPanel;
      await panel.sessionContext.ready;
      if (runtime.current?.sessionContext === panel.sessionContext) {
        await app.commands.execute(CommandIDs.load);
        await app.commands.execute(CommandIDs.askAgent);
      }
      return panel;
    }
  });
}
