import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateAsIs } from '../testing.js';
import type { IContextItem } from './context.js';
import { fileItems } from './drop.js';

translateAsIs();

const FILES = ['a.csv', 'data/a.csv', 'b.csv'];

/** Search of a workspace, as the kernel does it. */
async function find(text: string): Promise<readonly IContextItem[]> {
  const files = FILES.filter(name => name.includes(text)).map(
    name => ({ kind: 'file', name }) as const
  );
  return [{ kind: 'variable', name: 'a.csv' }, ...files];
}

const names = async (...paths: string[]) =>
  (await fileItems(paths, find)).map(({ name }) => name);

test('a path of the file browser names a file of the workspace', async () => {
  // The workspace may be a folder of the file browser's root.
  assert.deepEqual(await names('work/data/a.csv'), ['data/a.csv']);
  assert.deepEqual(await names('work/a.csv', 'RTC:b.csv'), ['a.csv', 'b.csv']);
});

test('another path is rejected by its name', async () => {
  await assert.rejects(names('work/data'), /work\/data is not a file/);
});
