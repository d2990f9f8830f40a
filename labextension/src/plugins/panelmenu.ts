import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { MenuSvg } from '@jupyterlab/ui-components';
import type { Menu } from '@lumino/widgets';

import { CommandIDs } from '../ids.js';
import type { LogPanel } from '../log/panel.js';
import { trans } from '../translation.js';
import { labels, listCommands, NO_ARGS, SHORT } from './registration.js';

interface IMenuCommand {
  readonly id: string;
  /** Label in the menu. */
  readonly label: string;
  /** Label among all commands. */
  readonly fullLabel: string;
  readonly caption: string;
  readonly isToggled?: () => boolean;
  readonly isEnabled?: () => boolean;
  readonly execute: () => unknown;
}

/** Add the commands of the panel's menu, and the menu. */
export function addPanelMenu(
  { commands }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  panel: LogPanel
): void {
  const shown = () => commands.execute(CommandIDs.showLog);
  const entries: readonly IMenuCommand[] = [
    {
      id: CommandIDs.filter,
      label: trans.__('Filter'),
      fullLabel: trans.__('Agent: Filter Actions'),
      caption: trans.__('Show only actions with some words, or of a kind'),
      isToggled: () => panel.isFiltering,
      execute: async () => {
        panel.isFiltering = !panel.isFiltering;
        await shown();
      }
    },
    {
      id: CommandIDs.follow,
      label: trans.__('Follow'),
      fullLabel: trans.__('Agent: Follow the Newest Action'),
      caption: trans.__('Keep the newest action visible'),
      isToggled: () => panel.follow,
      execute: () => (panel.follow = !panel.follow)
    },
    {
      id: CommandIDs.flatList,
      label: trans.__('Log as a flat list'),
      fullLabel: trans.__('Agent: Log as a Flat List'),
      caption: trans.__('Show every action in one list, without prompts'),
      isToggled: () => panel.isFlat,
      execute: () => (panel.isFlat = !panel.isFlat)
    },
    {
      id: CommandIDs.clearFinished,
      label: trans.__('Clear finished'),
      fullLabel: trans.__('Agent: Clear Finished Actions'),
      caption: trans.__('Hide what has ended; the log keeps it'),
      isEnabled: () => panel.canClear,
      execute: () => panel.clearFinished()
    }
  ];
  for (const { id, label, fullLabel, ...options } of entries) {
    commands.addCommand(id, {
      ...options,
      label: labels(label, fullLabel),
      describedBy: NO_ARGS
    });
  }
  commands.addCommand(CommandIDs.settings, {
    label: labels(trans.__('Settings'), trans.__('Agent: Settings')),
    caption: trans.__('Open the settings of the panel'),
    describedBy: NO_ARGS,
    isVisible: () => commands.hasCommand(SETTINGS_EDITOR),
    execute: () => commands.execute(SETTINGS_EDITOR, { query: 'OpenHands' })
  });
  listCommands(palette, ...entries.map(({ id }) => id), CommandIDs.settings);
  panel.menu = makeMenu(commands, entries);
}

const SETTINGS_EDITOR = 'settingeditor:open';

function makeMenu(
  commands: JupyterFrontEnd['commands'],
  entries: readonly IMenuCommand[]
): Menu {
  const menu = new MenuSvg({ commands });
  menu.addClass('oh-PanelMenu');
  const { rewind, showBrowser, showChanges, settings } = CommandIDs;
  const groups = [
    entries.map(({ id }) => id),
    [rewind, showChanges, showBrowser],
    [settings]
  ];
  for (const group of groups) {
    for (const command of group) {
      menu.addItem({ command, args: SHORT });
    }
    menu.addItem({ type: 'separator' });
  }
  return menu;
}
