/** What plugins share: their definition, palette entries, settings, tabs and notifications. */
import {
  ILayoutRestorer,
  LabShell,
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
import type { LabIcon } from '@jupyterlab/ui-components';
import type {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject,
  Token
} from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import { reasonOf } from '../events/errors.js';
import { TOAST } from '../notify.js';
import {
  IOhRuntime,
  type IKernelEvents,
  type RuntimeState
} from '../tokens.js';
import { setTranslation, trans } from '../translation.js';

/** Describe the arguments of a command by their JSON schemas. */
export function argsOf(properties: ReadonlyJSONObject) {
  return {
    args: { type: 'object', properties, additionalProperties: false }
  } as const;
}

/** Description of a command without arguments. */
export const NO_ARGS = { args: { type: 'object', properties: {} } } as const;

/** Describe the arguments of a command on an event. */
export function eventArgs(
  event: string,
  generation: string,
  others: ReadonlyJSONObject
) {
  return argsOf({
    event: { type: 'integer', minimum: 0, description: event },
    generation: { type: 'string', description: generation },
    ...others
  });
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

/** Arguments that ask a command for its label in the menu of the panel. */
export const SHORT = { isShort: true } as const;

/** Name a command in few words where the menu says what it is about. */
export function labels(
  short: string,
  full: string
): (args: ReadonlyPartialJSONObject) => string {
  return ({ isShort }) => (isShort === true ? short : full);
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

/** Single tab of the main area, and the command that shows it; closing it disposes it. */
export interface ITab<T extends Widget> {
  readonly command: string;
  /** Name under which the layout is restored after a reload. */
  readonly name: string;
  /** Title of the tab. */
  readonly title: string;
  /** Name of the command outside of the panel's menu. */
  readonly label: string;
  readonly caption: string;
  readonly icon: LabIcon;
  /** Arguments of the command. */
  readonly args?: ReturnType<typeof argsOf>;
  readonly create: () => T;
  /** Whether it is watched beside the notebook, rather than instead of it. */
  readonly isBeside?: boolean;
  /** Called with the command's arguments each time. */
  readonly onShow?: (content: T, args: ReadonlyPartialJSONObject) => void;
}

/** Add the command that shows a tab, and restore the tab after a reload. */
export function addTab<T extends Widget>(
  { commands, shell }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  tab: ITab<T>
): void {
  const { command, name, title, label, caption, icon } = tab;
  const tracker = new WidgetTracker<MainAreaWidget<T>>({
    namespace: `oh-jupyter-${name}`
  });
  commands.addCommand(command, {
    label: labels(title, label),
    caption,
    icon,
    describedBy: tab.args ?? NO_ARGS,
    execute: async args => {
      let open = tracker.currentWidget;
      if (open === null) {
        open = inTab(tab);
        await tracker.add(open);
        if (shell instanceof LabShell) {
          const place = tabOptions(shell, tab.isBeside === true);
          shell.add(open, 'main', { ...place, type: 'OpenHands' });
        } else {
          // The main area of Notebook 7 has one document.
          shell.add(open, 'right');
        }
      }
      tab.onShow?.(open.content, args);
      shell.activateById(open.id);
    }
  });
  void restorer?.restore(tracker, { command, name: () => name });
  listCommands(palette, command);
}

/** Place a tab next to our other tabs; only one that is watched beside a notebook splits the area. */
function tabOptions(
  shell: JupyterFrontEnd.IShell,
  isBeside: boolean
): DocumentRegistry.IOpenOptions {
  const widgets = [...shell.widgets('main')];
  const isOurs = ({ id }: Widget) => id.startsWith(TAB_ID_PREFIX);
  const showsDocument = widgets.some(each => !isOurs(each) && each.isVisible);
  const neighbor = widgets
    .filter(isOurs)
    .find(each => !isBeside || (showsDocument && each.isVisible));
  return neighbor
    ? { mode: 'tab-after', ref: neighbor.id }
    : { mode: isBeside ? 'split-right' : 'tab-after' };
}

/** Define a plugin that consists of one tab and needs only the runtimes. */
export function tabPlugin<T extends Widget>(
  id: string,
  description: string,
  tab: (runtime: IOhRuntime, commands: JupyterFrontEnd['commands']) => ITab<T>
): JupyterFrontEndPlugin<void> {
  return definePlugin({
    id,
    description,
    requires: [IOhRuntime],
    optional: [ICommandPalette, ILayoutRestorer],
    activate: (app, runtime, palette, restorer) =>
      addTab(app, palette, restorer, tab(runtime, app.commands))
  });
}

/** Create the panel of a tab, and the tab, which has no toolbar. */
function inTab<T extends Widget>({
  create,
  name,
  title,
  icon
}: ITab<T>): MainAreaWidget<T> {
  const tab = new MainAreaWidget({ content: create() });
  tab.id = TAB_ID_PREFIX + name;
  tab.title.label = title;
  tab.title.icon = icon;
  tab.title.closable = true;
  tab.toolbar.hide();
  return tab;
}

/** Call back when the state of the current notebook's runtime changes. */
export function followState(runtime: IOhRuntime, onChanged: () => void): void {
  let last: RuntimeState | undefined;
  const check = () => {
    const state = runtime.current?.state;
    if (state !== last) {
      last = state;
      onChanged();
    }
  };
  const watch = (_: unknown, events: IKernelEvents | null) => {
    events?.changed.connect(check);
    check();
  };
  runtime.currentChanged.connect(watch);
  watch(runtime, runtime.current);
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
