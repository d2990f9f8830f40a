import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { AgentModel } from '../agent/model.js';
import { AGENT_PANEL_ID, AgentPanel } from '../agent/panel.js';
import { CommandIDs } from '../ids.js';
import { agentIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import { definePlugin, followSettings, listCommands } from './registration.js';

const ID = 'oh-jupyter:agent';

const ARGS = {
  type: 'object',
  properties: {
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
  },
  additionalProperties: false
} as const;

/** Panel to talk with the agents that `%oh_agent` runs. */
export const agentPlugin = definePlugin({
  id: ID,
  description: 'Adds a sidebar panel with a prompt box for agents.',
  requires: [IOhRuntime],
  optional: [
    ICommandPalette,
    ILayoutRestorer,
    IRenderMimeRegistry,
    ISettingRegistry
  ],
  activate: (app, runtime, palette, restorer, rendermime, settings) => {
    const model = new AgentModel(runtime);
    const panel = new AgentPanel(model, app.commands, rendermime);
    app.shell.add(panel, 'right', { rank: 901, type: 'OpenHands' });
    restorer?.add(panel, AGENT_PANEL_ID);
    const command = CommandIDs.askAgent;
    app.commands.addCommand(command, {
      label: trans.__('Ask an Agent'),
      caption: trans.__('Let an agent work in the kernel of this notebook'),
      icon: agentIcon,
      describedBy: { args: ARGS },
      execute: async ({ prompt, agent, new: isNew }) => {
        app.shell.activateById(AGENT_PANEL_ID);
        if (typeof prompt === 'string') {
          const name = typeof agent === 'string' ? agent : null;
          await model.prompt(prompt, name, isNew === true);
        }
      }
    });
    listCommands(palette, command);
    void followSettings(settings, ID, current => {
      panel.preferred = current.get('agent').composite as string;
    });
  }
});
