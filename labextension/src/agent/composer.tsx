import * as React from 'react';

import type { IAgent } from '../control/operations.js';
import { trans } from '../translation.js';
import type { PromptBox } from './box.js';
import { Chips } from './chips.js';
import {
  completeMention,
  mentionAt,
  type IContextItem,
  type IMention,
  type IPrompt
} from './context.js';
import { OfferList, offerId, useOffers } from './offers.js';
import { AgentSelect, Options } from './options.js';
import { canUse } from './turn.js';

interface IComposerProps {
  box: PromptBox;
  agents: readonly IAgent[];
  /** Agent used by default; "" if none. */
  current: string;
  takeFocus: () => boolean;
  /** Whether the next prompt waits for the end of another turn. */
  isBusy: boolean;
  find: (query: string) => Promise<readonly IContextItem[]>;
  onSend: (prompt: IPrompt) => void;
  /** Stops the current turn; null if there is none. */
  onStop: (() => void) | null;
}

/** Prompt box: Enter sends, Shift+Enter adds a line, Esc stops the agent, and @ adds context. */
export function Composer(props: IComposerProps) {
  const { box, agents, current, isBusy, onSend, onStop } = props;
  const isUsable = agents.some(each => each.name === box.agent && canUse(each));
  const agent = isUsable ? box.agent : current;
  const canSend = box.text.trim() !== '' && agent !== '';
  const send = () => {
    if (canSend) {
      onSend(box.take(agent));
    }
  };
  const options = box.isNew
    ? []
    : (agents.find(({ name }) => name === agent)?.options ?? []);
  return (
    <form
      className="oh-Composer"
      aria-label={trans.__('Prompt')}
      onSubmit={event => {
        event.preventDefault();
        send();
      }}
    >
      <PromptText {...props} agent={agent} onEnter={send} />
      <div className="oh-Composer-row">
        <AgentSelect
          agents={agents}
          value={agent}
          onChange={name => (box.agent = name)}
        />
        <Options
          options={options}
          chosen={box.options}
          onChange={(id, value) => box.setOption(id, value)}
        />
        <label>
          <input
            type="checkbox"
            checked={box.isNew}
            onChange={({ target }) => (box.isNew = target.checked)}
          />
          {trans.__('New conversation')}
        </label>
        <span className="oh-Composer-buttons">
          {isBusy && (
            <button
              type="button"
              className="jp-mod-styled jp-mod-warn"
              title={trans.__('Stop the agent (Esc)')}
              disabled={onStop === null}
              onClick={() => onStop?.()}
            >
              {trans.__('Stop')}
            </button>
          )}
          {(!isBusy || canSend) && (
            <button
              type="submit"
              className="jp-mod-styled jp-mod-accept"
              disabled={!canSend}
            >
              {isBusy ? trans.__('Queue') : trans.__('Send')}
            </button>
          )}
        </span>
      </div>
    </form>
  );
}

/** Text of the prompt with its context, and the list of what a mention may mean. */
function PromptText(
  props: IComposerProps & { agent: string; onEnter: () => void }
) {
  const { box, agent, takeFocus, find, onEnter, onStop } = props;
  const area = React.useRef<HTMLTextAreaElement>(null);
  const [mention, setMention] = React.useState<IMention | null>(null);
  const offers = useOffers(mention, find);
  const listId = React.useId();
  React.useEffect(() => {
    if (area.current && takeFocus()) {
      area.current.focus();
    }
  });
  const write = (text: string, position: number) => {
    box.text = text;
    setMention(mentionAt(text, position));
  };
  const choose = (item: IContextItem | undefined) => {
    if (item && mention) {
      box.add(item);
      const name =
        item.kind === 'text' ? item.name.replace(/ /g, '-') : item.name;
      box.text = completeMention(box.text, mention, name);
      setMention(null);
      area.current?.focus();
    }
  };
  const startMention = () => {
    const { text } = box;
    const started = text === '' || /\s$/.test(text) ? `${text}@` : `${text} @`;
    area.current?.focus();
    write(started, started.length);
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    // Enter that confirms an input method's choice does nothing else.
    if (event.nativeEvent.isComposing) {
      return;
    }
    const keys = mention
      ? mentionKeys(offers, () => setMention(null), choose)
      : promptKeys(onEnter, onStop);
    const act = keys[event.shiftKey ? `Shift ${event.key}` : event.key];
    if (act) {
      event.preventDefault();
      event.stopPropagation();
      act();
    }
  };
  return (
    <>
      <Chips
        context={box.context}
        onRemove={item => box.remove(item)}
        onAdd={startMention}
      />
      {mention && <OfferList id={listId} offers={offers} onChoose={choose} />}
      <textarea
        ref={area}
        aria-label={trans.__('Prompt for the agent')}
        aria-autocomplete="list"
        aria-controls={mention ? listId : undefined}
        aria-activedescendant={
          mention && offers.items.length > 0
            ? offerId(offers.selected)
            : undefined
        }
        placeholder={trans.__('Ask %1…', agent || trans.__('an agent'))}
        rows={Math.min(8, Math.max(2, box.text.split('\n').length))}
        value={box.text}
        onChange={({ target }) => write(target.value, target.selectionStart)}
        onBlur={() => setMention(null)}
        onKeyDown={onKeyDown}
      />
    </>
  );
}

type Keys = Readonly<Record<string, (() => void) | undefined>>;

function promptKeys(onEnter: () => void, onStop: (() => void) | null): Keys {
  return { Enter: onEnter, Escape: onStop ?? undefined };
}

function mentionKeys(
  { items, selected, select }: ReturnType<typeof useOffers>,
  close: () => void,
  choose: (item: IContextItem | undefined) => void
): Keys {
  const count = items.length;
  if (count === 0) {
    return { Escape: close };
  }
  const complete = () => choose(items[selected]);
  return {
    Escape: close,
    Enter: complete,
    Tab: complete,
    ArrowDown: () => select((selected + 1) % count),
    ArrowUp: () => select((selected + count - 1) % count)
  };
}
