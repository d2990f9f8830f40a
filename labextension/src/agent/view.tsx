import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import { CommandIDs } from '../ids.js';
import { Notice } from '../log/notice.js';
import { trans } from '../translation.js';
import { Composer } from './composer.js';
import { Installations } from './installations.js';
import { priceLabel, totalCosts, type ITurn } from './turn.js';
import type { AgentModel } from './model.js';
import { TurnItem } from './turnitem.js';

interface IAgentViewProps {
  model: AgentModel;
  commands: JupyterFrontEnd['commands'];
  rendermime: IRenderMimeRegistry | null;
  preferred: string;
}

/** Conversation with a box for the next prompt. */
export function AgentView(props: IAgentViewProps) {
  const { model, commands, rendermime } = props;
  const { conversation, events } = model;
  const [failure, setFailure] = React.useState('');
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty />;
  }
  const turns = conversation?.turns ?? [];
  const busy = turns.find(({ stopReason }) => stopReason === '');
  const agents = conversation?.agents ?? [];
  const isNoneInstalled =
    agents.length > 0 && agents.every(({ state }) => state === 'missing');
  const showFailure = (error: unknown) => setFailure(reasonOf(error));
  return (
    <>
      <header className="oh-Agent-header">
        <h3 title={events.name}>{events.name}</h3>
        <Costs turns={turns} />
        <button
          title={trans.__('Compare the files that changed in this session')}
          onClick={() => void commands.execute(CommandIDs.showChanges)}
        >
          {trans.__('Changes')}
        </button>
      </header>
      <Turns turns={turns} sending={model.sending} rendermime={rendermime} />
      {(failure || model.error) && (
        <p className="oh-Agent-failure" role="alert">
          {failure || model.error}
        </p>
      )}
      {isNoneInstalled ? (
        <Installations agents={agents} model={model} />
      ) : (
        <Composer
          agents={agents}
          current={conversation?.current || props.preferred}
          isBusy={busy !== undefined || model.sending !== ''}
          onSend={(text, agent, isNew) => {
            setFailure('');
            model.prompt(text, agent, isNew).catch(showFailure);
          }}
          onStop={
            busy ? () => model.interrupt(busy.agent).catch(showFailure) : null
          }
        />
      )}
    </>
  );
}

function Costs(props: { turns: readonly ITurn[] }) {
  const { turns } = props;
  const costs = [...totalCosts(turns)].map(([currency, cost]) =>
    priceLabel(cost, currency)
  );
  return (
    <span
      className="oh-Agent-costs"
      title={trans.__('Cost of the turns shown here')}
    >
      {costs.join(' + ')}
    </span>
  );
}

/** Turns, oldest first; the end stays visible unless the person scrolled up. */
function Turns(props: {
  turns: readonly ITurn[];
  sending: string;
  rendermime: IRenderMimeRegistry | null;
}) {
  const { turns, sending, rendermime } = props;
  const list = React.useRef<HTMLDivElement>(null);
  const isAtEnd = React.useRef(true);
  React.useLayoutEffect(() => {
    if (isAtEnd.current && list.current) {
      list.current.scrollTop = list.current.scrollHeight;
    }
  }, [turns, sending]);
  return (
    <div
      ref={list}
      className="oh-Agent-turns"
      role="log"
      aria-label={trans.__('Conversation')}
      tabIndex={0}
      onScroll={({ currentTarget }) => {
        const { scrollTop, clientHeight, scrollHeight } = currentTarget;
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 8;
      }}
    >
      {turns.length === 0 && !sending && (
        <p className="oh-Note">
          {trans.__(
            'An agent works in this kernel, with your variables and files. Its actions are in the log and can be undone.'
          )}
        </p>
      )}
      {turns.map(turn => (
        <TurnItem key={turn.key} turn={turn} rendermime={rendermime} />
      ))}
      {sending && (
        <article className="oh-Turn">
          <p className="oh-Turn-prompt">{sending}</p>
          <p className="oh-Turn-facts">{trans.__('Starting…')}</p>
        </article>
      )}
    </div>
  );
}
