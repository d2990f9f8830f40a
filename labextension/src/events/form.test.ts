import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { parseForm } from './form.js';

describe('parseForm', () => {
  it('returns null for an Action that waits for approval', () => {
    assert.equal(parseForm({ is_question: false, form: [] }), null);
    assert.equal(parseForm({}), null);
  });

  it('returns the fields with their first inputs', () => {
    const form = [
      { name: 'a', title: 'A', type: 'integer', default: 2, is_required: true },
      { name: 'b', title: 'B', type: 'boolean', default: true },
      { name: 'c', title: 'C', type: 'array', default: null },
      {
        name: 'd',
        title: 'D',
        type: 'string',
        choices: [{ value: 'x', title: 'X' }]
      }
    ];
    const fields = parseForm({ is_question: true, form }) ?? [];
    assert.deepEqual(
      fields.map(({ initial }) => initial),
      ['2', true, [], '']
    );
    assert.equal(fields[0]?.isRequired, true);
    assert.deepEqual(fields[3]?.choices, [{ value: 'x', title: 'X' }]);
  });

  it('returns no fields for the question to open a page', () => {
    assert.deepEqual(parseForm({ is_question: true, form: [] }), []);
  });
});
