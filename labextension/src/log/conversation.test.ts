import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ICard } from '../events/card.js';
import {
  action,
  card,
  observation,
  step,
  translateAsIs,
  turn,
  UNDECIDED
} from '../testing.js';
import {
  conversationRows,
  isConversationRow,
  type LogRow
} from './conversation.js';
import { foldLabel } from './fold.js';

translateAsIs();

const guest = { options: { actor: { guest: 'claude-0123abcd' } } };

function ran(id: number, code: string, more = {}): ICard {
  return card(
    action(id, 'run_ipython', { code }, more),
    observation(id + 1, id, 'run_ipython', '', {})
  );
}

function said(id: number, content: string, source: 'user' | 'agent'): ICard {
  return card(
    action(
      id,
      'message',
      { content },
      { source, ...(source === 'agent' ? guest : {}) }
    )
  );
}

/** A row as one word and its identity. */
function word(row: LogRow): string {
  if (!isConversationRow(row)) {
    return 'generation' in row ? `card ${row.id}` : 'fresh';
  }
  switch (row.row) {
    case 'group':
      return `group ${row.turn ? row.turn.prompt : row.agent || row.source}`;
    case 'text':
      return `text ${row.text}`;
    case 'step':
      return `step ${row.step.title}`;
    case 'fold':
      return `fold ${row.cards.map(({ id }) => id).join(' ')}`;
    case 'sum':
      return 'sum';
  }
}

const words = (...args: Parameters<typeof conversationRows>) =>
  conversationRows(...args).map(word);

const NONE = new Map<string, boolean>();

test('actions without a prompt are grouped by who acted', () => {
  const mcp = { options: { actor: { client: 'Codex' } } };
  const mine = action(4, 'run', { command: 'ls' }, { source: 'user' });
  const entries = [
    ran(0, 'a', mcp),
    ran(2, 'b', mcp),
    card(mine, observation(5, 4)),
    ran(6, 'c', mcp)
  ];
  assert.deepEqual(words(entries, [], NONE), [
    'group Codex',
    'fold 0 2',
    'group user',
    'card 4',
    'group Codex',
    'card 6'
  ]);
});

test('what happens now is not folded, and a fold opens', () => {
  const entries = [ran(0, 'a'), ran(2, 'b')];
  const rows = conversationRows(entries, [], NONE);
  assert.deepEqual(rows.map(word), ['group agent', 'card 0', 'card 2']);
  const mine = card(action(4, 'run', {}, { source: 'user' }));
  const opened = new Map([['fold/g/0', true]]);
  assert.deepEqual(words([...entries, mine], [], opened), [
    'group agent',
    'fold 0 2',
    'card 0',
    'card 2',
    'group user',
    'card 4'
  ]);
});

test('a turn has its texts, steps and cards in their order', () => {
  const parts = [
    'First I look.',
    step('mcp__oh__run_ipython'),
    step('Search the web'),
    'Done.'
  ];
  const entries = [
    said(3, 'do it', 'user'),
    ran(4, 'a', guest),
    ran(6, 'b', guest),
    said(8, 'First I look. Done.', 'agent')
  ];
  const running = turn({ first_event: 3, parts, part_events: [3, 3, 7, 7] });
  const order = [
    'group do it',
    'text First I look.',
    'card 4',
    'card 6',
    'step Search the web',
    'text Done.'
  ];
  assert.deepEqual(words(entries, [running], NONE), order);
  const ended = { ...running, stop_reason: 'end_turn' };
  assert.deepEqual(words(entries, [ended], NONE), [
    'group do it',
    'text First I look.',
    'fold 4 6',
    'step Search the web',
    'text Done.',
    'sum'
  ]);
  const closed = new Map([['group/claude/1', false]]);
  assert.deepEqual(words(entries, [ended], closed), ['group do it']);
});

test('each of several parallel steps has its own card or its own line', () => {
  const parts = [
    step('mcp__oh__variables'),
    step('mcp__oh__run_ipython'),
    step('ls'),
    step('mcp__oh__run_ipython')
  ];
  const entries = [
    said(3, 'do it', 'user'),
    ran(4, 'a', guest),
    card(action(6, 'run', { command: 'ls' }, guest))
  ];
  const running = turn({ first_event: 3, parts, part_events: [3, 3, 3, 5] });
  assert.deepEqual(words(entries, [running], NONE), [
    'group do it',
    'step mcp__oh__variables',
    'card 4',
    'step mcp__oh__run_ipython',
    'card 6'
  ]);
});

test('a failed step stays beside its card, and each turn has its own cards', () => {
  const failed = step('oh_jupyter.edit', 'failed');
  const first = turn({
    first_event: 0,
    parts: [failed],
    part_events: [0],
    stop_reason: 'end_turn'
  });
  const second = turn({ first_event: 3, began: 2, prompt: 'more' });
  const entries = [
    said(0, 'do it', 'user'),
    ran(1, 'a', guest),
    said(3, 'more', 'user'),
    ran(4, 'b', guest)
  ];
  assert.deepEqual(words(entries, [first, second], NONE), [
    'group do it',
    'step oh_jupyter.edit',
    'card 1',
    'sum',
    'group more',
    'card 4'
  ]);
});

test('what waits for the person is never folded nor hidden', () => {
  const waiting = { ...ran(2, 'b', guest), confirmation: UNDECIDED };
  const entries = [said(0, 'do it', 'user'), ran(4, 'a', guest), waiting];
  const running = turn({ first_event: 0 });
  const closed = new Map([['group/claude/1', false]]);
  assert.deepEqual(words(entries, [running], closed), [
    'group do it',
    'card 2'
  ]);
});

test('a turn whose events are gone is still shown, in its place', () => {
  const old = turn({ first_event: 1, prompt: 'old', stop_reason: 'end_turn' });
  assert.deepEqual(words([ran(5, 'a')], [old], NONE), [
    'group old',
    'sum',
    'group agent',
    'card 5'
  ]);
});

test('a fold says what it holds', () => {
  const edit = (
    id: number,
    options: Record<string, unknown>,
    path = 'a.ipynb'
  ) => card(action(id, 'edit', { path: `/w/${path}` }, { options }));
  assert.equal(foldLabel([ran(0, 'a'), ran(2, 'b')]), 'Ran 2 cells');
  assert.equal(
    foldLabel([
      edit(1, { cell: 0 }),
      edit(2, { cell: 3 }),
      edit(3, { cell: 3 })
    ]),
    'Edited a.ipynb, 2 cells'
  );
  assert.equal(
    foldLabel([edit(1, {}), edit(2, {})]),
    'Edited a.ipynb, 2 times'
  );
  assert.equal(foldLabel([edit(1, {}), edit(2, {}, 'b.py')]), 'Edited 2 files');
});
