import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decoded, encoded } from './content.js';
import { freeName, kernelFolder, parsePath } from './paths.js';

test('a path of the drive names a kernel and a path in its store', () => {
  const folder = kernelFolder('a/b.ipynb', '0123456789-abcd');
  assert.equal(folder, 'a∕b.ipynb 01234567');
  const place = { kernel: '01234567', folder };
  assert.deepEqual(parsePath(`${folder}/x/y.txt`), {
    ...place,
    path: 'x/y.txt'
  });
  assert.deepEqual(parsePath(`/${folder}/`), { ...place, path: '' });
  assert.deepEqual(parsePath('/'), { kernel: '', folder: '', path: '' });
});

test('a name that is free', () => {
  const names = new Set(['a.txt', 'a-1.txt', '.x']);
  assert.equal(freeName('a.txt', names), 'a-2.txt');
  assert.equal(freeName('b', names), 'b');
  assert.equal(freeName('.x', names), '.x-1');
});

test('contents survive a round trip', () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, n) => n % 256);
  const { content, format } = decoded(bytes, undefined);
  assert.equal(format, 'base64');
  assert.deepEqual(encoded(content, format), bytes);
  assert.throws(() => decoded(bytes, 'text'), /not UTF-8/);
  const text = decoded(encoded('é\n', 'text'), undefined);
  assert.deepEqual(text, { content: 'é\n', format: 'text' });
  const cells = { cells: [1] };
  const { content: read } = decoded(encoded(cells, 'json'), 'json');
  assert.deepEqual(read, cells);
});
