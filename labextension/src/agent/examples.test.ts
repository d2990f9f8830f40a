import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs } from '../testing.js';
import type { IContextItem } from './context.js';
import { examplePrompts } from './examples.js';

translateAsIs();

const texts = (...items: IContextItem[]) =>
  examplePrompts(items).map(({ text, context }) => [
    text,
    context.map(({ name }) => name)
  ]);

test('examples work on a table, else on a file, else on the notebook', () => {
  const file: IContextItem = { kind: 'file', name: 'old/sales.csv' };
  const table: IContextItem = {
    kind: 'variable',
    name: 'df',
    detail: 'pandas.DataFrame'
  };
  const number: IContextItem = { kind: 'variable', name: 'x', detail: 'int' };
  assert.deepEqual(texts(number, table, file).slice(0, 2), [
    ['Describe df: columns, missing values, outliers', ['df']],
    ['Plot what is most interesting in df', ['df']]
  ]);
  assert.deepEqual(texts(number, file)[0], [
    'Load old/sales.csv and describe its columns',
    ['old/sales.csv']
  ]);
  assert.deepEqual(texts(number)[0], ['Explain what this notebook does', []]);
  assert.equal(texts(number).length, 3);
});
