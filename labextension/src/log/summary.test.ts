import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  action,
  card,
  observation,
  translateAsIs,
  UNDECIDED
} from '../testing.js';
import { kind, searchable, summary } from './summary.js';

translateAsIs();

const of = (type: string, args: Record<string, unknown>) =>
  summary(card(action(0, type, args)));

describe('summary', () => {
  it('quotes the first line of a command or a cell', () => {
    assert.equal(of('run', { command: 'ls -l' }).title, 'ls -l');
    assert.equal(of('run', { command: '\n ls\npwd' }).title, 'ls …');
    assert.equal(of('run_ipython', { code: 'x = 1\n\n' }).title, 'x = 1');
  });

  it('shows what a script runs, but the script to who decides on it', () => {
    const options = { title: 'ls -l' };
    const script = action(0, 'run', { command: '{\nls -l\n}' }, { options });
    assert.equal(summary(card(script)).title, 'ls -l');
    const waits = { ...card(script), confirmation: UNDECIDED };
    assert.equal(summary(waits).title, '{ …');
  });

  it('shows the file name before the directory', () => {
    assert.deepEqual(of('read', { path: '/home/ada/a.txt' }), {
      title: 'a.txt',
      detail: '/home/ada',
      path: '/home/ada/a.txt'
    });
    assert.deepEqual(of('edit', { path: '/a/b.py', command: 'view' }), {
      title: 'b.py',
      detail: 'Viewed · /a',
      path: '/a/b.py'
    });
    assert.deepEqual(of('write', { path: 'b.py' }), {
      title: 'b.py',
      detail: '',
      path: 'b.py'
    });
    assert.equal(of('edit', { path: '/a/' }).title, '/a/');
  });

  it('shows an address without its scheme', () => {
    assert.equal(of('browse', { url: 'https://a.org/x' }).title, 'a.org/x');
  });

  it('summarizes an observation without an action', () => {
    const alone = card(null, observation(1, null, 'error', 'it broke\nhere'));
    assert.equal(summary(alone).title, 'it broke …');
    assert.equal(kind(alone), 'error');
  });

  it('survives arguments that are missing or of a wrong type', () => {
    assert.equal(of('run', {}).title, '');
    assert.equal(of('read', { path: 7 }).title, '');
    assert.equal(of('brand_new', {}).title, '');
  });
});

describe('kind', () => {
  it('is the type of the action, whatever the observation', () => {
    const asked = action(0, 'browse_interactive', {});
    assert.equal(kind(card(asked, observation(1, 0, 'error'))), 'browse');
    assert.equal(kind(card(action(0, 'brand_new'))), 'other');
  });
});

describe('searchable', () => {
  it('holds arguments and output, in lower case', () => {
    const words = searchable(
      card(
        action(0, 'run', { command: 'Make' }),
        observation(1, 0, 'run', 'OK')
      )
    );
    assert.match(words, /make/);
    assert.match(words, /ok/);
  });
});

describe('summary below a directory', () => {
  it('makes directories relative', () => {
    const detail = (path: string) =>
      summary(card(action(0, 'read', { path })), '/home/ada/').detail;
    assert.equal(detail('/home/ada/a.txt'), '');
    assert.equal(detail('/home/ada/in/a.txt'), 'in');
    assert.equal(detail('/home/adam/a.txt'), '/home/adam');
  });
});
