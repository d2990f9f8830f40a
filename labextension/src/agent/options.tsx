import * as React from 'react';

import type { IAgent, IAgentOption } from '../control/operations.js';
import { trans } from '../translation.js';
import { canUse } from './turn.js';

interface IOptionProps {
  option: IAgentOption;
  value: string;
  onChange: (value: string) => void;
}

/** Options of an agent that runs, such as its mode and model; they apply to the next prompt. */
export function Options(props: {
  options: readonly IAgentOption[];
  chosen: Readonly<Record<string, string>>;
  onChange: (id: string, value: string) => void;
}) {
  const { options, chosen, onChange } = props;
  return (
    <>
      {options.map(option => {
        const { id, current, choices } = option;
        const Control = choices.length > 0 ? Choice : Switch;
        return (
          <Control
            key={id}
            option={option}
            value={chosen[id] ?? current}
            onChange={value => onChange(id, value)}
          />
        );
      })}
    </>
  );
}

function Choice({ option, value, onChange }: IOptionProps) {
  const { name, choices } = option;
  const description = choices.find(each => each.value === value)?.description;
  return (
    <select
      aria-label={name}
      title={description ? `${name}: ${description}` : name}
      value={value}
      onChange={({ target }) => onChange(target.value)}
    >
      {choices.map(choice => (
        <option key={choice.value} value={choice.value}>
          {choice.name || choice.value}
        </option>
      ))}
    </select>
  );
}

function Switch({ option, value, onChange }: IOptionProps) {
  return (
    <label>
      <input
        type="checkbox"
        checked={value === 'on'}
        onChange={({ target }) => onChange(target.checked ? 'on' : 'off')}
      />
      {option.name}
    </label>
  );
}

/** Selector of the agent; one that cannot be used says why. */
export function AgentSelect(props: {
  agents: readonly IAgent[];
  value: string;
  onChange: (name: string) => void;
}) {
  const { agents, value, onChange } = props;
  return (
    <select
      aria-label={trans.__('Agent')}
      title={trans.__('Agent')}
      value={value}
      onChange={({ target }) => onChange(target.value)}
    >
      {agents.map(each => (
        <option
          key={each.name}
          value={each.name}
          disabled={!canUse(each)}
          title={each.reason || each.installation}
        >
          {agentLabel(each)}
        </option>
      ))}
    </select>
  );
}

function agentLabel({ name, state }: IAgent): string {
  switch (state) {
    case 'missing':
      return trans.__('%1 (not installed)', name);
    case 'forbidden':
      return trans.__('%1 (not allowed)', name);
    default:
      return name;
  }
}
