import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { DiffLayout } from '../changes/diff.js';
import { ChangesModel } from '../changes/model.js';
import { ChangesPanel } from '../changes/panel.js';
import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { addTab, followSettings, inTab } from './registration.js';

const ID = 'oh-jupyter:changes';

/** Compares the files of a session with what they were when it began. */
export const changesPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'A tab with the files that changed in the session, compared.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IEditorLanguageRegistry,
    ISettingRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    languages: IEditorLanguageRegistry | null,
    settings: ISettingRegistry | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addTab(app, palette, restorer, trans, {
      command: CommandIDs.showChanges,
      name: 'changes',
      options: {
        label: trans.__('Show What Changed'),
        caption: trans.__('Compare the files that changed in this session'),
        icon: ohIcon
      },
      create: () => {
        const model = new ChangesModel(runtime);
        const panel = new ChangesPanel(model, app.commands, languages, trans);
        void followLayout(settings, panel);
        return inTab(panel, 'changes', trans.__('Changes'));
      }
    });
  }
};

/** Without settings texts are beside each other. */
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
