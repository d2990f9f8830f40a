import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation } from '../testing.js';
import { isImage, sections, tellsMore } from './sections.js';

const PNG = 'data:image/png;base64,iVBORw0KGgo=';

/** Sections in short: name, kind and body. */
function short(...parts: Parameters<typeof card>): string[] {
  return sections(card(...parts)).map(
    ({ name, kind, body }) => `${name} ${kind} ${body}`
  );
}

describe('sections', () => {
  it('shows thought, command and output', () => {
    assert.deepEqual(
      short(
        action(0, 'run', { command: 'ls', thought: 'Look.' }),
        observation(1, 0, 'run', '\x1b[32ma.txt\x1b[0m')
      ),
      ['thought prose Look.', 'command code ls', 'output code a.txt']
    );
  });

  it('leaves out what is empty', () => {
    const asked = action(0, 'run', { command: 'true', thought: '' });
    assert.deepEqual(short(asked, observation(1, 0, 'run', '\n')), [
      'command code true'
    ]);
  });

  it('shows the diff of an edit instead of its arguments', () => {
    const asked = action(0, 'edit', { old_str: 'a', new_str: 'b' });
    const done = observation(1, 0, 'edit', 'Edited.', { diff: '-a\n+b' });
    assert.deepEqual(short(asked, done), ['diff diff -a\n+b']);
    assert.deepEqual(short(asked), ['old code a', 'new code b']);
    const failed = observation(
      1,
      0,
      'edit',
      'ERROR:\nno match',
      {},
      { outcome: 'failed' }
    );
    assert.deepEqual(
      short(asked, failed).at(-1),
      'error error ERROR:\nno match'
    );
    const view = observation(1, 0, 'edit', '1 a', {});
    assert.deepEqual(short(action(0, 'edit', {}), view), ['result code 1 a']);
  });

  it('shows the images of a page, a cell and a file', () => {
    const page = observation(1, 0, 'browse', 'Hello', { screenshot: PNG });
    assert.deepEqual(short(action(0, 'browse', {}), page), [
      `screenshot image ${PNG}`,
      'page code Hello'
    ]);
    const cell = observation(1, 0, 'run_ipython', '', { image_urls: [PNG, 3] });
    assert.deepEqual(short(null, cell), [`image image ${PNG}`]);
    const file = observation(1, 0, 'read', PNG);
    assert.deepEqual(short(null, file), [`image image ${PNG}`]);
    const cut = observation(1, 0, 'read', PNG.slice(0, -3) + '…');
    assert.deepEqual(short(null, cut), []);
  });

  it('never offers a URL that needs a request', () => {
    const page = observation(1, 0, 'browse', '', {
      screenshot: 'https://example.org/track.png'
    });
    assert.deepEqual(short(null, page), []);
    const cell = observation(1, 0, 'run_ipython', '', {
      image_urls: ['javascript:alert(1)']
    });
    assert.deepEqual(short(null, cell), []);
  });

  it('shows the arguments and text of unknown types', () => {
    const asked = action(0, 'brand_new', { depth: 2 });
    assert.deepEqual(short(asked, observation(1, 0, 'brand_new', 'done')), [
      'arguments code {\n  "depth": 2\n}',
      'result prose done'
    ]);
  });

  it('indents the JSON of a tool, and leaves other text alone', () => {
    const result = (content: string) =>
      short(null, observation(1, null, 'mcp', content));
    assert.deepEqual(result('{"a":1}'), ['result code {\n  "a": 1\n}']);
    assert.deepEqual(result('{"a":1, …'), ['result code {"a":1, …']);
  });
});

describe('isImage', () => {
  it('accepts only data URLs of three formats', () => {
    assert.ok(isImage(PNG));
    assert.ok(isImage('data:image/jpeg;base64,AAAA'));
    assert.ok(!isImage('data:image/svg+xml;base64,AAAA'));
    assert.ok(!isImage('data:text/html;base64,AAAA'));
    assert.ok(!isImage('data:image/png;base64,AAAA" onload="x'));
    assert.ok(!isImage('https://example.org/a.png'));
  });
});

describe('tellsMore', () => {
  const more = (...parts: Parameters<typeof action>) =>
    tellsMore(card(action(...parts)));

  it('detects cards whose title does not show the whole action', () => {
    assert.ok(!more(0, 'run', { command: 'sudo ls' }));
    assert.ok(more(0, 'run', { command: 'ls\nsudo ls' }));
    assert.ok(more(0, 'run', { command: 'ls' }, { clipped: true }));
    assert.ok(more(0, 'write', { path: '/etc/a', content: 'b' }));
  });
});
