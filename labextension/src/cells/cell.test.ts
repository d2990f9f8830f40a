import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { action, card, observation } from '../testing.js';
import { codeCell, comesFrom, isCell, origin } from './cell.js';

const FOOTER =
  '\n[Jupyter current working directory: /home/me/[x]]' +
  '\n[Jupyter Python interpreter: /usr/bin/python3]';
const DATA = 'iVBORw0KGgo=';

const asked = action(4, 'run_ipython', { code: '6 * 7' });

/** The outputs of a cell whose Observation says this. */
function outputs(
  content: string,
  extras: Record<string, unknown> = {},
  type = 'run_ipython'
) {
  return codeCell(card(asked, observation(5, 4, type, content, extras)))
    .outputs;
}

describe('codeCell', () => {
  it('has the code, the text without its footer, and where it came from', () => {
    const answer = observation(5, 4, 'run_ipython', `42${FOOTER}`, {});
    assert.deepEqual(codeCell(card(asked, answer)), {
      cell_type: 'code',
      execution_count: null,
      metadata: { oh_jupyter: { source: 'agent', event: 4, generation: 'g' } },
      outputs: [{ output_type: 'stream', name: 'stdout', text: '42\n' }],
      source: '6 * 7'
    });
  });

  it('has no outputs if nothing was printed', () => {
    const nothing = '[Code executed successfully with no output]';
    assert.deepEqual(outputs(nothing + FOOTER), []);
    assert.deepEqual(outputs(nothing), []);
    assert.deepEqual(outputs(''), []);
    assert.deepEqual(outputs(FOOTER), []);
    assert.deepEqual(codeCell(card(asked, null, true)).outputs, []);
  });

  it('keeps text that a cell printed itself', () => {
    const text = `a${FOOTER}\nb\n`;
    assert.equal(outputs(text)[0]?.text, text);
    assert.equal(outputs(text + FOOTER)[0]?.text, text);
    assert.equal(outputs('  indented\n\n' + FOOTER)[0]?.text, '  indented\n');
  });

  it('has images of the two formats that notebooks keep as base64', () => {
    const image_urls = [
      `data:image/png;base64,${DATA}`,
      `data:image/jpeg;base64,${DATA}`,
      `data:image/svg+xml;base64,${DATA}`,
      'https://example.org/a.png',
      7
    ];
    assert.deepEqual(outputs(`plot${FOOTER}`, { image_urls }), [
      { output_type: 'stream', name: 'stdout', text: 'plot\n' },
      {
        output_type: 'display_data',
        data: { 'image/png': DATA },
        metadata: {}
      },
      {
        output_type: 'display_data',
        data: { 'image/jpeg': DATA },
        metadata: {}
      }
    ]);
    assert.deepEqual(outputs('', { image_urls: 'none' }), []);
  });

  it('shows on stderr that the code could not run', () => {
    assert.deepEqual(outputs('The kernel died', {}, 'error'), [
      { output_type: 'stream', name: 'stderr', text: 'The kernel died\n' }
    ]);
    assert.deepEqual(outputs('No.', {}, 'user_rejected'), []);
  });

  it('takes the code from the observation if the action is missing', () => {
    const answer = observation(5, 4, 'run_ipython', '1', { code: 'one' });
    const cell = codeCell(card(null, answer));
    assert.equal(cell.source, 'one');
    assert.deepEqual(cell.metadata.oh_jupyter, {
      source: 'agent',
      event: 4,
      generation: 'g'
    });
  });
});

describe('isCell', () => {
  it('accepts only code that ran or was lost', () => {
    const done = observation(5, 4, 'run_ipython', '42', {});
    assert.ok(isCell(card(asked, done)));
    assert.ok(isCell(card(asked, null, true)));
    assert.ok(isCell(card(asked, observation(5, 4, 'error', 'died'))));
    assert.ok(!isCell(card(asked)));
    assert.ok(!isCell(card(asked, observation(5, 4, 'null'))));
    assert.ok(!isCell(card(action(4), observation(5, 4))));
    assert.ok(!isCell(card(action(4, 'run_ipython', { code: '' }), done)));
  });
});

describe('comesFrom', () => {
  it('compares event and generation', () => {
    const from = origin(card(asked));
    assert.ok(comesFrom({ ...from }, from));
    assert.ok(!comesFrom({ ...from, event: 5 }, from));
    assert.ok(!comesFrom({ ...from, generation: 'h' }, from));
    assert.ok(!comesFrom(undefined, from));
    assert.ok(!comesFrom('agent', from));
  });
});
