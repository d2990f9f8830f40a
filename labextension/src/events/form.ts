import type { IFormField, IQuestion } from '../control/operations.js';

/** Value that a person enters: a text, a switch, or several choices. */
export type Input = string | boolean | readonly string[];

/** Field of a form with which an agent asks a person. */
export interface IField extends IFormField {
  /** What is entered at first. */
  readonly initial: Input;
}

/** Return the fields of a question; null for an Action that waits for approval. */
export function formOf({
  is_question,
  form
}: Pick<IQuestion, 'is_question' | 'form'>): readonly IField[] | null {
  return is_question
    ? form.map(field => ({
        ...field,
        initial: initialInput(field.type, field.default)
      }))
    : null;
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
