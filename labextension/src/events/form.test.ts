import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { IFormField } from '../control/operations.js';
import { formOf } from './form.js';

function field(type: IFormField['type'], initial: unknown): IFormField {
  return {
    name: type,
    title: type,
    type,
    description: '',
    choices: [],
    is_required: false,
    default: initial,
    minimum: null,
    maximum: null
  };
}

describe('formOf', () => {
  it('returns null for an Action that waits for approval', () => {
    assert.equal(formOf({ is_question: false, form: [] }), null);
  });

  it('returns the fields with their first inputs', () => {
    const form = [
      field('integer', 2),
      field('boolean', true),
      field('array', null),
      field('string', null)
    ];
    const fields = formOf({ is_question: true, form }) ?? [];
    assert.deepEqual(
      fields.map(({ initial }) => initial),
      ['2', true, [], '']
    );
  });

  it('returns no fields for the question to open a page', () => {
    assert.deepEqual(formOf({ is_question: true, form: [] }), []);
  });
});
