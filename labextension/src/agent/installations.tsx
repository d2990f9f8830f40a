import { Clipboard, Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { AgentModel } from './model.js';
import type { IAgent } from './turn.js';

/** Milliseconds; without them a notification is only counted in the status bar. */
const TOAST = { autoClose: 6000 };

/** The agents that can be installed, where none is. */
export function Installations(props: {
  agents: readonly IAgent[];
  model: AgentModel;
  trans: TranslationBundle;
}) {
  const { agents, model, trans } = props;
  const copy = (command: string) => {
    Clipboard.copyToSystem(command);
    Notification.success(trans.__('Copied: %1', command), TOAST);
  };
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
              aria-label={trans.__('Copy how to install %1', name)}
              onClick={() => copy(installation)}
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
        {trans.__('Look again')}
      </button>
    </section>
  );
}
