import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { agentIcon } from '../agent/icon.js';
import { AgentModel } from '../agent/model.js';
import { AGENT_PANEL_ID, AgentPanel } from '../agent/panel.js';
import { CommandIDs } from '../ids.js';
import { IOhRuntime } from '../tokens.js';
import { followSettings, listCommands } from './registration.js';

const ID = 'oh-jupyter:agent';

const ARGS = {
  type: 'object',
  properties: {
    prompt: {
      type: 'string',
      description: 'What the agent is to do; without it, the panel is shown.'
    },
    agent: {
      type: 'string',
      description: 'Its name; without it, the one that was asked last.'
    },
    new: {
      type: 'boolean',
      default: false,
      description: 'Whether to begin a new conversation.'
    }
  },
  additionalProperties: false
} as const;

/** A panel to talk with the agents that `%oh_agent` asks. */
export const agentPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'A sidebar panel with a prompt box for agents.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [
    ITranslator,
    ICommandPalette,
    ILayoutRestorer,
    IRenderMimeRegistry,
    ISettingRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    rendermime: IRenderMimeRegistry | null,
    settings: ISettingRegistry | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    const model = new AgentModel(runtime);
    const panel = new AgentPanel(model, app.commands, rendermime, trans);
    app.shell.add(panel, 'right', { rank: 901, type: 'OpenHands' });
    restorer?.add(panel, AGENT_PANEL_ID);
    const command = CommandIDs.askAgent;
    app.commands.addCommand(command, {
      label: trans.__('Ask an Agent'),
      caption: trans.__('Have an agent work in the kernel of this notebook'),
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
    listCommands(palette, trans, command);
    void followSettings(settings, ID, found => {
      panel.preferred = found.get('agent').composite as string;
    });
  }
};
