/** What plugins share: their definition, palette entries, settings, tabs and notifications. */
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
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import type { Token } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import { reasonOf } from '../events/errors.js';
import { ohIcon } from '../log/icons.js';
import { TOAST } from '../notify.js';
import { IOhRuntime } from '../tokens.js';
import { setTranslation, trans } from '../translation.js';

/** Schema of a command without arguments. */
export const NO_ARGS = { args: { type: 'object', properties: {} } } as const;

/** Return the JSON schema of the arguments of a command on an event. */
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

const TAB_ID_PREFIX = 'oh-jupyter-';

export function notifyFailure(error: unknown): void {
  Notification.error(reasonOf(error), TOAST);
}

type Tokens<T extends unknown[]> = { [K in keyof T]: Token<T[K]> };
type Nullable<T extends unknown[]> = { [K in keyof T]: T[K] | null };

interface IPluginOptions<R extends unknown[], O extends unknown[], S> {
  readonly id: string;
  readonly description: string;
  readonly requires: readonly [...Tokens<R>];
  readonly optional: readonly [...Tokens<O>];
  readonly provides?: Token<S>;
  readonly activate: (
    app: JupyterFrontEnd,
    ...services: [...R, ...Nullable<O>]
  ) => S;
}

/** Define a plugin that starts with the application and sets the translation first. */
export function definePlugin<R extends unknown[], O extends unknown[], S>({
  requires,
  optional,
  activate,
  ...options
}: IPluginOptions<R, O, S>): JupyterFrontEndPlugin<S> {
  return {
    ...options,
    autoStart: true,
    requires: [...requires] as Token<unknown>[],
    optional: [...optional, ITranslator] as Token<unknown>[],
    activate: (app: JupyterFrontEnd, ...services: unknown[]) => {
      const translator = services.pop() as ITranslator | null;
      setTranslation((translator ?? nullTranslator).load('oh_jupyter'));
      return activate(app, ...(services as [...R, ...Nullable<O>]));
    }
  };
}

/** List commands in the palette, if there is one. */
export function listCommands(
  palette: ICommandPalette | null,
  ...commands: readonly string[]
): void {
  for (const command of commands) {
    palette?.addItem({ command, category: trans.__('OpenHands') });
  }
}

/** Single tab of the main area; closing it disposes it. */
export interface ITab<T extends Widget> {
  readonly command: string;
  /** Name under which the layout is restored after a reload. */
  readonly name: string;
  readonly options: Omit<CommandRegistry.ICommandOptions, 'execute'>;
  readonly create: () => MainAreaWidget<T>;
}

/** Add the command that shows a tab, and restore the tab after a reload. */
export function addTab<T extends Widget>(
  { commands, shell }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
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
        shell.add(tab, 'main', { ...tabOptions(shell), type: 'OpenHands' });
      }
      shell.activateById(tab.id);
    }
  });
  void restorer?.restore(tracker, { command, name: () => name });
  listCommands(palette, command);
}

/** EventRef a tab next to our other tabs; only the first one splits the main area. */
function tabOptions(
  shell: JupyterFrontEnd.IShell
): DocumentRegistry.IOpenOptions {
  for (const { id } of shell.widgets('main')) {
    if (id.startsWith(TAB_ID_PREFIX)) {
      return { mode: 'tab-after', ref: id };
    }
  }
  return { mode: 'split-right' };
}

/** Define a plugin that consists of one tab and needs only the runtimes. */
export function tabPlugin<T extends Widget>(
  id: string,
  description: string,
  tab: (runtime: IOhRuntime) => ITab<T>
): JupyterFrontEndPlugin<void> {
  return definePlugin({
    id,
    description,
    requires: [IOhRuntime],
    optional: [ICommandPalette, ILayoutRestorer],
    activate: (app, runtime, palette, restorer) =>
      addTab(app, palette, restorer, tab(runtime))
  });
}

/** Wrap a panel in a tab of the main area that has no toolbar. */
export function inTab<T extends Widget>(
  content: T,
  name: string,
  label: string,
  icon = ohIcon
): MainAreaWidget<T> {
  const tab = new MainAreaWidget({ content });
  tab.id = TAB_ID_PREFIX + name;
  tab.title.label = label;
  tab.title.icon = icon;
  tab.title.closable = true;
  tab.toolbar.hide();
  return tab;
}

/** Apply settings now and at every change; without settings the defaults stay. */
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
    console.warn(`Cannot read the settings of ${id}.`, error);
    return null;
  }
}
