import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { AgentModel } from '../agent/model.js';
import { Drafts } from '../agent/drafts.js';
import { ContextDrop } from '../agent/drop.js';
import { contextFinder } from '../agent/notebook.js';
import { ChangesModel } from '../changes/model.js';
import { CommandIDs } from '../ids.js';
import { agentIcon, ohIcon } from '../log/icons.js';
import { LogPanel, PANEL_ID } from '../log/panel.js';
import { LimitsModel } from '../log/limits.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import { addCellPrompts, CELL_PROMPTS } from './cellprompts.js';
import { addPanelMenu } from './panelmenu.js';
import {
  argsOf,
  definePlugin,
  followSettings,
  listCommands,
  NO_ARGS
} from './registration.js';

const ID = 'oh-jupyter:log';

const ASK_ARGS = argsOf({
  prompt: {
    type: 'string',
    description: 'Prompt for the agent; without it, only show the panel.'
  },
  agent: {
    type: 'string',
    description: 'Name of the agent; by default, the one used last.'
  },
  new: {
    type: 'boolean',
    default: false,
    description: 'Whether to start a new conversation.'
  }
});

/** Panel in the right sidebar: the conversation with agents and every action. */
export const logPlugin = definePlugin({
  id: ID,
  description:
    'Adds a sidebar panel with the prompts and actions in the current notebook.',
  requires: [IOhRuntime],
  optional: [
    ICommandPalette,
    ILayoutRestorer,
    IRenderMimeRegistry,
    ISettingRegistry,
    INotebookTracker
  ],
  activate: (
    app,
    runtime,
    palette,
    restorer,
    rendermime,
    settings,
    notebooks
  ) => {
    const { baseUrl } = app.serviceManager.serverSettings;
    const drafts = new Drafts(window.sessionStorage, baseUrl);
    const agents = new AgentModel(runtime, drafts);
    const panel = new LogPanel(
      runtime,
      agents,
      new ChangesModel(runtime),
      new LimitsModel(runtime),
      app.commands,
      rendermime,
      contextFinder(agents, notebooks)
    );
    new ContextDrop(panel.node, agents, notebooks, () => panel.ask());
    app.shell.add(panel, 'right', { rank: 900, type: 'OpenHands' });
    restorer?.add(panel, PANEL_ID);
    app.commands.addCommand(CommandIDs.showLog, {
      label: trans.__('Agent: Panel'),
      caption: trans.__('Show what you and the agent did in this kernel'),
      icon: ohIcon,
      describedBy: NO_ARGS,
      execute: () => app.shell.activateById(PANEL_ID)
    });
    app.commands.addCommand(CommandIDs.askAgent, {
      label: trans.__('Agent: Ask'),
      caption: trans.__('Let an agent work in the kernel of this notebook'),
      icon: agentIcon,
      describedBy: ASK_ARGS,
      execute: async ({ prompt, agent, new: isNew }) => {
        app.shell.activateById(PANEL_ID);
        panel.ask();
        if (typeof prompt === 'string') {
          const name = typeof agent === 'string' ? agent : null;
          await agents.sendText(prompt, {
            agent: name,
            isNew: isNew === true
          });
        }
      }
    });
    listCommands(palette, CommandIDs.showLog, CommandIDs.askAgent);
    addPanelMenu(app, palette, panel);
    if (notebooks) {
      const open = () => app.commands.execute(CommandIDs.askAgent);
      addCellPrompts(app, runtime, notebooks, agents, open);
      listCommands(palette, ...CELL_PROMPTS);
    }
    void followSettings(settings, ID, current => {
      runtime.limit = current.get('limit').composite as number;
      panel.follow = current.get('follow').composite as boolean;
      panel.isFlat = current.get('flat').composite as boolean;
      panel.preferred = current.get('agent').composite as string;
    });
  }
});
