import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import type { DiffLayout } from '../changes/diff.js';
import { ChangesModel } from '../changes/model.js';
import { ChangesPanel } from '../changes/panel.js';
import { CommandIDs } from '../ids.js';
import { changesIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  addTab,
  argsOf,
  definePlugin,
  followSettings
} from './registration.js';

const ID = 'oh-jupyter:changes';

const CHANGES_ARGS = argsOf({
  path: {
    type: 'string',
    description: 'Absolute path of the file to show first.'
  }
});

/** Tab that compares files with their state at the start of the session. */
export const changesPlugin = definePlugin({
  id: ID,
  description: 'Adds a tab that compares the files changed in the session.',
  requires: [IOhRuntime],
  optional: [
    ICommandPalette,
    ILayoutRestorer,
    IEditorLanguageRegistry,
    ISettingRegistry
  ],
  activate: (app, runtime, palette, restorer, languages, settings) =>
    addTab(app, palette, restorer, {
      command: CommandIDs.showChanges,
      name: 'changes',
      title: trans.__('Changes'),
      label: trans.__('Agent: Changes'),
      caption: trans.__('Compare the files that changed in this session'),
      icon: changesIcon,
      args: CHANGES_ARGS,
      onShow: (panel, { path }) => {
        if (typeof path === 'string') {
          panel.showFile(path);
        }
      },
      create: () => {
        const model = new ChangesModel(runtime);
        const panel = new ChangesPanel(model, app.commands, languages);
        void followLayout(settings, panel);
        return panel;
      }
    })
});

async function followLayout(
  registry: ISettingRegistry | null,
  panel: ChangesPanel
): Promise<void> {
  const apply = (settings: ISettingRegistry.ISettings) => {
    if (!panel.isDisposed) {
      panel.diffLayout = settings.get('layout').composite as DiffLayout;
    }
  };
  const settings = await followSettings(registry, ID, apply);
  panel.disposed.connect(() => settings?.changed.disconnect(apply));
  panel.onLayout = layout => void settings?.set('layout', layout);
}
