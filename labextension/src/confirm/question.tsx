import * as React from 'react';

import type { IVerdict } from '../events/api.js';
import type { ICard, IConfirmation } from '../events/card.js';
import type { IField, Input } from '../events/form.js';
import { trans } from '../translation.js';
import { failureLabel } from './labels.js';

interface IQuestionProps {
  card: ICard;
  confirmation: IConfirmation;
  form: readonly IField[];
  onDecide: (card: ICard, verdict: IVerdict) => void;
  /** Time until nobody has answered. */
  countdown: React.ReactNode;
}

/** Bar below an agent's question: its fields, and the buttons to answer or not. */
export function QuestionBar(props: IQuestionProps) {
  const { card, confirmation, form, onDecide, countdown } = props;
  const [changed, setChanged] = React.useState<Record<string, Input>>({});
  const values = Object.fromEntries(
    form.map(({ name, initial }) => [name, changed[name] ?? initial])
  );
  const answer = (approve: boolean) =>
    onDecide(card, approve ? { approve, values } : { approve });
  return (
    <form
      className="oh-Confirm oh-Question"
      aria-label={trans.__('Answer the question of %1', confirmation.agent)}
      aria-busy={confirmation.busy}
      onKeyDown={event => event.stopPropagation()}
      onSubmit={event => {
        event.preventDefault();
        answer(true);
      }}
    >
      {form.map(field => (
        <Field
          key={field.name}
          field={field}
          input={values[field.name] ?? field.initial}
          onInput={input => setChanged({ ...changed, [field.name]: input })}
        />
      ))}
      {countdown}
      <div className="oh-Confirm-buttons">
        <button
          className="jp-mod-styled jp-mod-accept"
          type="submit"
          disabled={confirmation.busy}
        >
          {trans.__('Answer')}
        </button>
        <button
          className="jp-mod-styled jp-mod-reject"
          type="button"
          disabled={confirmation.busy}
          onClick={() => answer(false)}
        >
          {trans.__('Decline')}
        </button>
      </div>
      {confirmation.error && (
        <p className="oh-Confirm-error" role="alert">
          {failureLabel(confirmation.error)}
        </p>
      )}
    </form>
  );
}

interface IFieldProps {
  field: IField;
  input: Input;
  onInput: (input: Input) => void;
}

function Field({ field, input, onInput }: IFieldProps) {
  return (
    <label className="oh-Question-field" title={field.description}>
      <span>{field.title}</span>
      <Control field={field} input={input} onInput={onInput} />
      {field.description && <small>{field.description}</small>}
    </label>
  );
}

function Control({ field, input, onInput }: IFieldProps) {
  const { choices, is_required, type } = field;
  if (type === 'boolean') {
    return (
      <input
        type="checkbox"
        checked={input === true}
        onChange={({ target }) => onInput(target.checked)}
      />
    );
  }
  if (choices.length > 0) {
    const multiple = type === 'array';
    return (
      <select
        className="jp-mod-styled"
        multiple={multiple}
        required={is_required}
        value={multiple ? [...(input as readonly string[])] : String(input)}
        onChange={({ target }) =>
          onInput(
            multiple
              ? Array.from(target.selectedOptions, ({ value }) => value)
              : target.value
          )
        }
      >
        {!multiple && <option value="" />}
        {choices.map(({ value, title }) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      className="jp-mod-styled"
      type={type === 'string' ? 'text' : 'number'}
      step={type === 'integer' ? 1 : 'any'}
      required={is_required}
      value={String(input)}
      onChange={({ target }) => onInput(target.value)}
    />
  );
}
