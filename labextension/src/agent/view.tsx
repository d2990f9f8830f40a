import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import { CommandIDs } from '../ids.js';
import { Notice } from '../log/notice.js';
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
  trans: TranslationBundle;
}

/** The conversation, and the box for the next prompt. */
export function AgentView(props: IAgentViewProps) {
  const { model, commands, rendermime, trans } = props;
  const { conversation, events } = model;
  const [failure, setFailure] = React.useState('');
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty trans={trans} />;
  }
  const turns = conversation?.turns ?? [];
  const busy = turns.find(({ stopReason }) => stopReason === '');
  const agents = conversation?.agents ?? [];
  const isNoneInstalled =
    agents.length > 0 && agents.every(({ state }) => state === 'missing');
  const fail = (error: unknown) => setFailure(reasonOf(error));
  return (
    <>
      <header className="oh-Agent-header">
        <h3 title={events.name}>{events.name}</h3>
        <Costs turns={turns} trans={trans} />
        <button
          title={trans.__('Compare the files that changed in this session')}
          onClick={() => void commands.execute(CommandIDs.showChanges)}
        >
          {trans.__('Changes')}
        </button>
      </header>
      <Turns
        turns={turns}
        sending={model.sending}
        rendermime={rendermime}
        trans={trans}
      />
      {(failure || model.error) && (
        <p className="oh-Agent-failure" role="alert">
          {failure || model.error}
        </p>
      )}
      {isNoneInstalled ? (
        <Installations agents={agents} model={model} trans={trans} />
      ) : (
        <Composer
          agents={agents}
          current={conversation?.current || props.preferred}
          isBusy={busy !== undefined || model.sending !== ''}
          onSend={(text, agent, isNew) => {
            setFailure('');
            model.prompt(text, agent, isNew).catch(fail);
          }}
          onStop={busy ? () => model.interrupt(busy.agent).catch(fail) : null}
          trans={trans}
        />
      )}
    </>
  );
}

function Costs(props: { turns: readonly ITurn[]; trans: TranslationBundle }) {
  const { turns, trans } = props;
  const costs = [...totalCosts(turns)].map(([currency, cost]) =>
    priceLabel(cost, currency)
  );
  return (
    <span
      className="oh-Agent-costs"
      title={trans.__('What the turns shown here have cost')}
    >
      {costs.join(' + ')}
    </span>
  );
}

/** The turns, oldest first; the end stays in sight unless the person scrolled up. */
function Turns(props: {
  turns: readonly ITurn[];
  sending: string;
  rendermime: IRenderMimeRegistry | null;
  trans: TranslationBundle;
}) {
  const { turns, sending, rendermime, trans } = props;
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
            'Ask an agent: it works in this kernel, with your variables and files. What it does is in the log and can be undone.'
          )}
        </p>
      )}
      {turns.map(turn => (
        <TurnItem
          key={turn.key}
          turn={turn}
          rendermime={rendermime}
          trans={trans}
        />
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
