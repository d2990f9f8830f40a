import { isRecord, text } from './wire.js';

/** Value that a person enters: a text, a switch, or several choices. */
export type Input = string | boolean | readonly string[];

/** Field of a form with which an agent asks a person. */
export interface IField {
  readonly name: string;
  readonly title: string;
  readonly type: string;
  readonly description: string;
  readonly choices: readonly { value: string; title: string }[];
  readonly isRequired: boolean;
  /** What is entered at first. */
  readonly initial: Input;
}

/** Parse the fields of a question; null for an Action that waits for approval. */
export function parseForm(
  waiting: Record<string, unknown>
): readonly IField[] | null {
  if (waiting.is_question !== true) {
    return null;
  }
  const form = Array.isArray(waiting.form) ? waiting.form : [];
  return form.filter(isRecord).map(field => {
    const choices = Array.isArray(field.choices) ? field.choices : [];
    return {
      name: text(field, 'name'),
      title: text(field, 'title'),
      type: text(field, 'type'),
      description: text(field, 'description'),
      choices: choices.filter(isRecord).map(each => ({
        value: text(each, 'value'),
        title: text(each, 'title')
      })),
      isRequired: field.is_required === true,
      initial: initialInput(text(field, 'type'), field.default)
    };
  });
}

function initialInput(type: string, value: unknown): Input {
  if (type === 'boolean') {
    return value === true;
  }
  if (type === 'array') {
    return Array.isArray(value) ? value.map(String) : [];
  }
  return value === null || value === undefined ? '' : String(value);
}
