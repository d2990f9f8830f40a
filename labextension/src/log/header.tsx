import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { costsLabel, tokensLabel, type ITurn } from '../agent/turn.js';
import type { AgentModel } from '../agent/model.js';
import { isCard, type LogEntry } from '../events/card.js';
import type { IActivity, IKernelEvents } from '../tokens.js';
import { trans } from '../translation.js';
import { KernelStatus } from './kernelstatus.js';
import { restrictionLabel } from './restrictions.js';
import type { LimitsModel } from './limits.js';
import { sandboxLabels } from './sandbox.js';

export interface IHeaderProps {
  events: IActivity;
  entries: readonly LogEntry[];
  turns: readonly ITurn[];
  /** Agents of the notebook's kernel; null for a fleet. */
  agents: AgentModel | null;
  /** Limits of agents in the notebook’s kernel; null for a fleet. */
  limits: LimitsModel | null;
  /** Opens the menu of the panel below a button. */
  onMenu: (button: HTMLElement) => void;
}

/** Head of the panel: the notebook, the state of its kernel, and the menu. */
export function Header(props: IHeaderProps) {
  const { events, entries, turns, agents, limits, onMenu } = props;
  const count = entries.filter(isCard).length;
  return (
    <header className="oh-Header">
      <div className="oh-Header-row">
        <h3 className="oh-Header-name" title={events.name}>
          {events.name}
        </h3>
        <button
          className="oh-Header-menu"
          aria-haspopup="menu"
          aria-label={trans.__('Menu of the panel')}
          title={trans.__('Filter, Follow, Undo, Settings…')}
          onClick={({ currentTarget }) => onMenu(currentTarget)}
        >
          <svg className="oh-Icon" viewBox="0 0 16 16" aria-hidden="true">
            <path d="M3.5 8h.1M8 8h.1M12.5 8h.1" />
          </svg>
        </button>
      </div>
      <div className="oh-Header-facts">
        {agents && (
          <KernelStatus session={(events as IKernelEvents).sessionContext} />
        )}
        {count > 0 && (
          <span className="oh-Header-count">
            {trans._n('%1 action', '%1 actions', count)}
          </span>
        )}
        <Costs turns={turns} />
        {limits && events.state === 'ready' && (
          <UseSignal signal={limits.changed}>
            {() => (
              <>
                <Sandbox model={limits} />
                <Restrictions model={limits} />
              </>
            )}
          </UseSignal>
        )}
      </div>
      {limits && events.state === 'ready' && (
        <UseSignal signal={limits.changed}>
          {() => <FolderSettings model={limits} />}
        </UseSignal>
      )}
      {agents?.running && <AtWork model={agents} turn={agents.running} />}
    </header>
  );
}

/** Cost and tokens of the turns, as far as the agents report them. */
function Costs({ turns }: { turns: readonly ITurn[] }) {
  const costs = costsLabel(turns);
  const tokens = tokensLabel(turns);
  return (
    <>
      {costs && (
        <span
          className="oh-Header-costs"
          title={trans.__('Cost of the turns shown here')}
        >
          {costs}
        </span>
      )}
      {tokens && (
        <span title={trans.__('Tokens of the turns shown here')}>{tokens}</span>
      )}
    </>
  );
}

function Sandbox({ model }: { model: LimitsModel }) {
  if (model.sandbox === null) {
    return null;
  }
  const { label, explanation } = sandboxLabels(model.sandbox);
  return (
    <span
      className={`oh-Header-sandbox oh-mod-${model.sandbox.place}`}
      title={explanation}
    >
      {label}
    </span>
  );
}

/** What the administrator switches off or limits, greyed, with the reason. */
function Restrictions({ model }: { model: LimitsModel }) {
  return (
    <>
      {model.restrictions.map(each => (
        <span
          key={each.capability}
          className="oh-Header-restriction"
          title={each.reason}
        >
          {restrictionLabel(each)}
        </span>
      ))}
    </>
  );
}

/** Settings of the folder, to be trusted by the person who has read them. */
function FolderSettings({ model }: { model: LimitsModel }) {
  const { untrusted } = model;
  if (untrusted === null) {
    return model.hasTrusted ? (
      <div className="oh-FolderSettings" role="status">
        {trans.__('Trusted. Restart the kernel to apply the settings.')}
      </div>
    ) : null;
  }
  return (
    <section
      className="oh-FolderSettings"
      aria-label={trans.__('Settings of the folder')}
    >
      <p>
        {trans.__(
          '%1 can loosen what limits agents. These settings do not hold until you trust them:',
          untrusted.file
        )}
      </p>
      <ul>
        {untrusted.settings.map(({ name, value }) => (
          <li key={name}>
            <code>{`${name} = ${value}`}</code>
          </li>
        ))}
      </ul>
      <button className="oh-Button" onClick={() => void model.trust()}>
        {trans.__('Trust these settings')}
      </button>
    </section>
  );
}

/** Agent that works, since when, and the button that stops it. */
function AtWork({ model, turn }: { model: AgentModel; turn: ITurn }) {
  return (
    <div className="oh-Header-row oh-AtWork">
      <span className="oh-AtWork-name">
        {trans.__('%1 is working', turn.agent)}
      </span>
      <Elapsed since={turn.began} />
      <button
        className="oh-AtWork-stop"
        title={trans.__('Stop the agent')}
        onClick={() => model.stop(turn.agent)}
      >
        {trans.__('Stop')}
      </button>
    </div>
  );
}

const SECOND_MS = 1000;

/** Time since a start, in seconds since the epoch. */
function Elapsed({ since }: { since: number }) {
  const [now, setNow] = React.useState(Date.now());
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor(now / SECOND_MS - since));
  const minutes = Math.floor(seconds / 60);
  // Screen readers would read every second.
  return (
    <span className="oh-AtWork-time" aria-hidden="true">
      {minutes > 0
        ? trans.__('%1 min %2 s', minutes, seconds % 60)
        : trans.__('%1 s', seconds)}
    </span>
  );
}
