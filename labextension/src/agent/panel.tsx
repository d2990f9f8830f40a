import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import * as React from 'react';

import { KernelPanel } from '../control/panel.js';
import { agentIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import type { AgentModel } from './model.js';
import { AgentView } from './view.js';

/** Id of the panel in the application's shell. */
export const AGENT_PANEL_ID = 'oh-jupyter-agent';

/** Sidebar panel to talk with agents. */
export class AgentPanel extends KernelPanel<AgentModel> {
  constructor(
    model: AgentModel,
    private readonly _commands: JupyterFrontEnd['commands'],
    private readonly _rendermime: IRenderMimeRegistry | null
  ) {
    super(model);
    this.id = AGENT_PANEL_ID;
    this.addClass('oh-Agent');
    this.title.icon = agentIcon;
    this.title.caption = trans.__('OpenHands: talk with an agent');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Talk with an agent'));
  }

  /** Agent to use before any was asked. */
  set preferred(name: string) {
    this._preferred = name;
    this.update();
  }

  protected override onActivateRequest(): void {
    this.node.querySelector('textarea')?.focus();
  }

  protected override view(): React.ReactElement {
    return (
      <AgentView
        model={this.model}
        commands={this._commands}
        rendermime={this._rendermime}
        preferred={this._preferred}
      />
    );
  }

  private _preferred = '';
}
