import { trans } from '../translation.js';
import type { IContextItem } from './context.js';

/** Prompt that a person can start with. */
export interface IExample {
  readonly text: string;
  readonly context: readonly IContextItem[];
}

const TABLE_TYPE = /(DataFrame|LazyFrame|Series|ndarray|Dataset|DataArray)$/;
const DATA_FILE = /\.(csv|tsv|parquet|feather|xlsx?|jsonl?)$/i;

/** Return three prompts that work on the data of a notebook: a table, a file, or the notebook itself. */
export function examplePrompts(
  items: readonly IContextItem[]
): readonly IExample[] {
  const table = items.find(
    ({ kind, detail = '' }) => kind === 'variable' && TABLE_TYPE.test(detail)
  );
  const file = items.find(
    ({ kind, name }) => kind === 'file' && DATA_FILE.test(name)
  );
  const data = table ?? file;
  const ofNotebook = [
    trans.__('Explain what this notebook does'),
    trans.__('Find mistakes in this notebook and propose fixes'),
    trans.__('Which data and packages can I use here?')
  ].map(text => ({ text, context: [] }));
  if (!data) {
    return ofNotebook;
  }
  const ofData = [
    table
      ? trans.__('Describe %1: columns, missing values, outliers', data.name)
      : trans.__('Load %1 and describe its columns', data.name),
    trans.__('Plot what is most interesting in %1', data.name)
  ].map(text => ({ text, context: [data] }));
  return [...ofData, ofNotebook[0]!];
}
