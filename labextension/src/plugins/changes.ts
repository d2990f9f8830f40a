import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';

import type { DiffLayout } from '../changes/diff.js';
import { ChangesModel } from '../changes/model.js';
import { ChangesPanel } from '../changes/panel.js';
import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';

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
    const tracker = new WidgetTracker<MainAreaWidget<ChangesPanel>>({
      namespace: 'oh-jupyter-changes'
    });
    const command = CommandIDs.showChanges;
    app.commands.addCommand(command, {
      label: trans.__('Show What Changed'),
      caption: trans.__('Compare the files that changed in this session'),
      icon: ohIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: async () => {
        let tab = tracker.currentWidget;
        if (!tab) {
          const model = new ChangesModel(runtime);
          const panel = new ChangesPanel(model, app.commands, languages, trans);
          tab = inTab(panel, trans);
          await tracker.add(tab);
          app.shell.add(tab, 'main', {
            mode: 'split-right',
            type: 'OpenHands'
          });
          void followSettings(settings, panel);
        }
        app.shell.activateById(tab.id);
      }
    });
    palette?.addItem({ command, category: trans.__('OpenHands') });
    void restorer?.restore(tracker, { command, name: () => 'changes' });
  }
};

function inTab(
  panel: ChangesPanel,
  trans: TranslationBundle
): MainAreaWidget<ChangesPanel> {
  const tab = new MainAreaWidget({ content: panel });
  tab.id = 'oh-jupyter-changes';
  tab.title.label = trans.__('Changes');
  tab.title.icon = ohIcon;
  tab.title.closable = true;
  tab.toolbar.hide();
  return tab;
}

/** Without settings texts are beside each other. */
async function followSettings(
  registry: ISettingRegistry | null,
  panel: ChangesPanel
): Promise<void> {
  try {
    const settings = await registry?.load(ID);
    const apply = () => {
      if (settings && !panel.isDisposed) {
        panel.diffLayout = settings.get('layout').composite as DiffLayout;
      }
    };
    settings?.changed.connect(apply);
    panel.disposed.connect(() => settings?.changed.disconnect(apply));
    panel.onLayout = layout => void settings?.set('layout', layout);
    apply();
  } catch (error) {
    console.warn(`The settings of ${ID} cannot be read.`, error);
  }
}
