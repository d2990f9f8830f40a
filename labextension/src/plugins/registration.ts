/** What plugins do alike: commands in the palette, settings, tabs and remarks. */
import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Widget } from '@lumino/widgets';

import { reasonOf } from '../events/errors.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';

/** Milliseconds; without them a notification is only counted in the status bar. */
export const TOAST = { autoClose: 6000 };

/** Of a command that takes nothing. */
export const NO_ARGS = { args: { type: 'object', properties: {} } } as const;

/** The JSON schema of a command's arguments: an event that is meant, and others. */
export function eventArgs<T extends object>(
  event: string,
  generation: string,
  others: T
) {
  return {
    type: 'object',
    properties: {
      event: { type: 'integer', minimum: 0, description: event },
      generation: { type: 'string', description: generation },
      ...others
    },
    additionalProperties: false
  } as const;
}

/** Begin of the id of each tab. */
const TAB_PREFIX = 'oh-jupyter-';

/** Tell a person why something was not done. */
export function tellFailure(error: unknown): void {
  Notification.error(reasonOf(error), TOAST);
}

/** List commands in the palette, where there is one. */
export function listCommands(
  palette: ICommandPalette | null,
  trans: TranslationBundle,
  ...commands: readonly string[]
): void {
  for (const command of commands) {
    palette?.addItem({ command, category: trans.__('OpenHands') });
  }
}

/** A tab of the main area, of which there is one at most; closing disposes it. */
export interface ITab<T extends Widget> {
  readonly command: string;
  /** Of what is restored after a reload. */
  readonly name: string;
  readonly options: Omit<CommandRegistry.ICommandOptions, 'execute'>;
  readonly create: () => MainAreaWidget<T>;
}

/** Add the command that shows a tab, which comes back after a reload. */
export function addTab<T extends Widget>(
  { commands, shell }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  trans: TranslationBundle,
  { command, name, options, create }: ITab<T>
): void {
  const tracker = new WidgetTracker<MainAreaWidget<T>>({
    namespace: `oh-jupyter-${name}`
  });
  commands.addCommand(command, {
    describedBy: NO_ARGS,
    ...options,
    execute: async () => {
      let tab = tracker.currentWidget;
      if (tab === null) {
        tab = create();
        await tracker.add(tab);
        shell.add(tab, 'main', { ...placeOfTab(shell), type: 'OpenHands' });
      }
      shell.activateById(tab.id);
    }
  });
  void restorer?.restore(tracker, { command, name: () => name });
  listCommands(palette, trans, command);
}

/** Put a tab beside our other tabs; only the first one splits the main area. */
function placeOfTab(
  shell: JupyterFrontEnd.IShell
): DocumentRegistry.IOpenOptions {
  for (const { id } of shell.widgets('main')) {
    if (id.startsWith(TAB_PREFIX)) {
      return { mode: 'tab-after', ref: id };
    }
  }
  return { mode: 'split-right' };
}

/** A plugin that is a tab, and needs nothing but the runtimes. */
export function tabPlugin<T extends Widget>(
  id: string,
  description: string,
  tab: (runtime: IOhRuntime, trans: TranslationBundle) => ITab<T>
): JupyterFrontEndPlugin<void> {
  return {
    id,
    description,
    autoStart: true,
    requires: [IOhRuntime],
    optional: [ITranslator, ICommandPalette, ILayoutRestorer],
    activate: (
      app: JupyterFrontEnd,
      runtime: IOhRuntime,
      translator: ITranslator | null,
      palette: ICommandPalette | null,
      restorer: ILayoutRestorer | null
    ): void => {
      const trans = (translator ?? nullTranslator).load('oh_jupyter');
      addTab(app, palette, restorer, trans, tab(runtime, trans));
    }
  };
}

/** A panel as a tab of the main area, without a toolbar of its own. */
export function inTab<T extends Widget>(
  content: T,
  name: string,
  label: string,
  icon = ohIcon
): MainAreaWidget<T> {
  const tab = new MainAreaWidget({ content });
  tab.id = TAB_PREFIX + name;
  tab.title.label = label;
  tab.title.icon = icon;
  tab.title.closable = true;
  tab.toolbar.hide();
  return tab;
}

/** Apply settings now and whenever they change; without any, what is default stays. */
export async function followSettings(
  registry: ISettingRegistry | null,
  id: string,
  apply: (settings: ISettingRegistry.ISettings) => void
): Promise<ISettingRegistry.ISettings | null> {
  try {
    const settings = (await registry?.load(id)) ?? null;
    settings?.changed.connect(apply);
    if (settings) {
      apply(settings);
    }
    return settings;
  } catch (error) {
    console.warn(`The settings of ${id} cannot be read.`, error);
    return null;
  }
}
