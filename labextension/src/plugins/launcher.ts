import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  argsOf,
  definePlugin,
  followState,
  listCommands,
  NO_ARGS,
  notifyFailure
} from './registration.js';

const NEW_ARGS = argsOf({
  cwd: {
    type: 'string',
    description: 'Folder of the notebook; by default, the root.'
  }
});

/** Launcher card for notebooks with a runtime, and the command that loads one. */
export const launcherPlugin = definePlugin({
  id: 'oh-jupyter:launcher',
  description: 'Creates notebooks with a runtime, and loads one into a kernel.',
  requires: [IOhRuntime],
  optional: [ICommandPalette, ILauncher],
  activate: (app, runtime, palette, launcher) => {
    addLoad(app, runtime);
    addNewNotebook(app, runtime);
    const category = trans.__('OpenHands');
    listCommands(palette, CommandIDs.load, CommandIDs.newNotebook);
    launcher?.add({ command: CommandIDs.newNotebook, category, rank: 1 });
  }
});

function addLoad(app: JupyterFrontEnd, runtime: IOhRuntime): void {
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
        notifyFailure(error);
        return false;
      }
    }
  });
  followState(runtime, () =>
    app.commands.notifyCommandChanged(CommandIDs.load)
  );
}

function addNewNotebook(app: JupyterFrontEnd, runtime: IOhRuntime): void {
  app.commands.addCommand(CommandIDs.newNotebook, {
    label: trans.__('Notebook with an Agent'),
    caption: trans.__('Create a notebook whose kernel you share with an agent'),
    icon: ohIcon,
    describedBy: NEW_ARGS,
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
