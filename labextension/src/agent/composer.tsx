import * as React from 'react';

import { trans } from '../translation.js';
import type { IAgent } from './turn.js';

interface IComposerProps {
  agents: readonly IAgent[];
  /** Agent used by default; "" if none. */
  current: string;
  isBusy: boolean;
  onSend: (text: string, agent: string, isNew: boolean) => void;
  /** Stops the current turn; null if there is none. */
  onStop: (() => void) | null;
}

/** Prompt box: Enter sends, Shift+Enter adds a line. */
export function Composer(props: IComposerProps) {
  const { agents, current, isBusy, onSend, onStop } = props;
  const [text, setText] = React.useState('');
  const [chosen, setChosen] = React.useState('');
  const [isNew, setNew] = React.useState(false);
  const isUsable = (name: string) =>
    agents.some(each => each.name === name && each.state !== 'missing');
  const agent =
    [chosen, current].find(isUsable) ??
    agents.find(({ state }) => state !== 'missing')?.name ??
    '';
  const canSend = !isBusy && text.trim() !== '' && agent !== '';
  const send = () => {
    if (canSend) {
      onSend(text, agent, isNew);
      setText('');
      setChosen('');
      setNew(false);
    }
  };
  return (
    <form
      className="oh-Composer"
      onSubmit={event => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        aria-label={trans.__('Prompt for the agent')}
        placeholder={trans.__('Ask %1…', agent || trans.__('an agent'))}
        rows={Math.min(8, Math.max(2, text.split('\n').length))}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={event => {
          // Enter that confirms an input method's choice does not send.
          const isEnter = event.key === 'Enter' && !event.shiftKey;
          if (isEnter && !event.nativeEvent.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      <div className="oh-Composer-row">
        <select
          aria-label={trans.__('Agent')}
          value={agent}
          disabled={isBusy}
          onChange={({ target }) => setChosen(target.value)}
        >
          {agents.map(({ name, state, installation }) => (
            <option
              key={name}
              value={name}
              disabled={state === 'missing'}
              title={installation}
            >
              {state === 'missing'
                ? trans.__('%1 (not installed)', name)
                : name}
            </option>
          ))}
        </select>
        <label>
          <input
            type="checkbox"
            checked={isNew}
            disabled={isBusy}
            onChange={({ target }) => setNew(target.checked)}
          />
          {trans.__('New conversation')}
        </label>
        {isBusy ? (
          <button
            type="button"
            className="jp-mod-styled jp-mod-warn"
            disabled={onStop === null}
            onClick={() => onStop?.()}
          >
            {trans.__('Stop')}
          </button>
        ) : (
          <button
            type="submit"
            className="jp-mod-styled jp-mod-accept"
            disabled={!canSend}
          >
            {trans.__('Send')}
          </button>
        )}
      </div>
    </form>
  );
}
