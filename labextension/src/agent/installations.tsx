import * as React from 'react';

import { copyCommand } from '../notify.js';
import { trans } from '../translation.js';
import type { AgentModel } from './model.js';
import type { IAgent } from './turn.js';

/** List of agents with their installation commands, if none is installed. */
export function Installations(props: {
  agents: readonly IAgent[];
  model: AgentModel;
}) {
  const { agents, model } = props;
  return (
    <section className="oh-Installations" aria-label={trans.__('Agents')}>
      <p>
        {trans.__(
          'No agent is installed. Run one of these commands in a terminal.'
        )}
      </p>
      <ul>
        {agents.map(({ name, installation }) => (
          <li key={name}>
            <b>{name}</b> <code>{installation}</code>{' '}
            <button
              type="button"
              className="jp-mod-styled"
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
    </section>
  );
}
