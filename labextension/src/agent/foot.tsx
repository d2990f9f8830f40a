import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { trans } from '../translation.js';
import type { PromptBox } from './box.js';
import { Composer } from './composer.js';
import type { IContextItem } from './context.js';
import { Installations } from './installations.js';
import type { AgentModel } from './model.js';
import { Queue } from './queue.js';

interface IAgentFootProps {
  model: AgentModel;
  /** Returns once whether the prompt box should get the focus. */
  takeFocus: () => boolean;
  /** Whether nothing has happened yet. */
  isEmpty: boolean;
  /** Finds what can be added to a prompt. */
  find: (query: string) => Promise<readonly IContextItem[]>;
}

/** Foot of the panel: the prompt box, or the agents that can be installed. */
export function AgentFoot(props: IAgentFootProps) {
  const { model } = props;
  const { conversation, error, box } = model;
  const agents = conversation?.agents ?? [];
  if (!box || (agents.length === 0 && !error)) {
    return null;
  }
  return agents.every(({ state }) => state === 'missing') ? (
    <Installations agents={agents} model={model} isOpen={props.isEmpty} />
  ) : (
    <UseSignal signal={box.changed}>
      {() => <PromptFoot {...props} box={box} />}
    </UseSignal>
  );
}

function PromptFoot(props: IAgentFootProps & { box: PromptBox }) {
  const { model, box, takeFocus, find } = props;
  const { conversation, error, running } = model;
  const starting = box.sent && !running ? box.sent.text : '';
  const failure = box.failure || error;
  return (
    <>
      {starting && (
        <p className="oh-Agent-sending" role="status">
          {trans.__('Starting: %1', starting)}
        </p>
      )}
      {failure && (
        <p className="oh-Agent-failure" role="alert">
          {failure}
        </p>
      )}
      <Queue
        queue={box.queue}
        isHeld={box.isHeld && !model.isBusy}
        onRemove={prompt => box.removeQueued(prompt)}
        onSend={() => void model.sendNext()}
      />
      <Composer
        box={box}
        agents={conversation?.agents ?? []}
        current={model.defaultAgent}
        takeFocus={takeFocus}
        isBusy={model.isBusy}
        find={find}
        onSend={prompt => void model.send(prompt)}
        onStop={running ? () => model.stop(running.agent) : null}
      />
    </>
  );
}
