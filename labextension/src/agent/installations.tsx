import * as React from 'react';

import { copyCommand } from '../notify.js';
import type { IAgent } from '../control/operations.js';
import { trans } from '../translation.js';
import type { AgentModel } from './model.js';

/** List of agents with their installation commands, if none is installed. */
export function Installations(props: {
  agents: readonly IAgent[];
  model: AgentModel;
  /** Whether the person has nothing else to look at. */
  isOpen: boolean;
}) {
  const { agents, model, isOpen } = props;
  return (
    <details className="oh-Installations" open={isOpen}>
      <summary>
        {trans.__('No agent is installed. Choose one to install')}
      </summary>
      <p>
        {trans.__('Run one of these commands in a terminal, then refresh.')}
      </p>
      <ul aria-label={trans.__('Agents')}>
        {agents.map(({ name, installation }) => (
          <li key={name}>
            <b>{name}</b>
            <code>{installation}</code>
            <button
              type="button"
              aria-label={trans.__('Copy the installation command of %1', name)}
              onClick={() => copyCommand(installation)}
            >
              {trans.__('Copy')}
            </button>
          </li>
        ))}
      </ul>
      <button
        type="button"
        className="jp-mod-styled"
        onClick={() => void model.refresh()}
      >
        {trans.__('Refresh')}
      </button>
    </details>
  );
}
