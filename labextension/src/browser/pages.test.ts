import assert from 'node:assert/strict';
import { test } from 'node:test';

import { action, card, observation, translateAsIs } from '../testing.js';
import { pageGroups } from './pages.js';

translateAsIs();

const prompt = (id: number, content: string) =>
  card(action(id, 'message', { content }, { source: 'user' }));

const answer = (id: number) => card(action(id, 'message', { content: 'Done' }));

const page = (id: number, actor: Record<string, string>) =>
  card(
    action(id, 'browse', { url: `http://x/${id}` }, { options: { actor } }),
    observation(id + 1, id, 'browse', '', { url: `http://x/${id}` })
  );

const CLAUDE = { guest: 'claude-01234567' };
const CLIENT = { client: 'Cursor' };

test('pages are grouped by prompt, and by client without one', () => {
  const groups = pageGroups([
    prompt(1, 'Find the tides'),
    page(2, CLAUDE),
    page(4, CLIENT),
    page(6, CLAUDE),
    answer(8),
    page(10, CLIENT),
    page(12, CLIENT),
    prompt(14, 'Log in'),
    page(15, CLAUDE)
  ]);
  assert.deepEqual(
    groups.map(({ label, cards }) => [label, cards.map(({ id }) => id)]),
    [
      ['Log in', [15]],
      ['Cursor', [4, 10, 12]],
      ['Find the tides', [2, 6]]
    ]
  );
});

test('a page that failed to open is not listed', () => {
  const failed = card(
    action(1, 'browse', { url: 'http://x' }),
    observation(2, 1, 'error', 'no', {})
  );
  assert.deepEqual(pageGroups([failed, card(action(3))]), []);
});
