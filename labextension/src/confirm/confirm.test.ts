import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { ICard, IConfirmation } from '../events/card.js';
import { action, card, UNDECIDED, translateAsIs } from '../testing.js';
import { findWaiting } from './find.js';
import {
  agentLabel,
  expiryLabel,
  isFullyShown,
  notificationLabel,
  reasonLabel,
  sandboxLabel
} from './labels.js';

translateAsIs();

function waits(id: number, more: Partial<IConfirmation> = {}): ICard {
  const confirmation = { ...UNDECIDED, reason: 'why', ...more };
  return { ...card(action(id)), confirmation };
}

describe('findWaiting', () => {
  const waiting = [waits(1, { busy: true }), waits(2), waits(3)];

  it('returns the only undecided card, and none of several', () => {
    assert.equal(findWaiting({ waiting: waiting.slice(0, 2) }, {})?.id, 2);
    assert.equal(findWaiting({ waiting }, {}), undefined);
    assert.equal(findWaiting({ waiting: [] }, {}), undefined);
  });

  it('returns the named card, or none', () => {
    assert.equal(findWaiting({ waiting }, { event: 3 })?.id, 3);
    assert.equal(findWaiting({ waiting }, { event: 1 }), undefined);
    const other = { event: 3, generation: 'another' };
    assert.equal(findWaiting({ waiting }, other), undefined);
  });
});

describe('isFullyShown', () => {
  const runs = (command: string): ICard => ({
    ...waits(1),
    action: action(1, 'run', { command })
  });

  const shown = (card: ICard) => isFullyShown(card, 'a.ipynb');

  it('is true only if everything fits a notification', () => {
    assert.ok(shown(runs('pip install pandas')));
    assert.ok(!shown(runs('import os\n\nos.system("sudo rm -rf /")')));
    assert.ok(!shown(runs('x'.repeat(61))));
    // Nor of what is cut: a reason, or the directory of a file.
    assert.ok(
      !shown({ ...runs('ls'), ...waits(1, { reason: 'y'.repeat(120) }) })
    );
    const emptied = action(1, 'write', { path: '/etc/passwd', content: '' });
    assert.ok(!shown({ ...waits(1), action: emptied }));
  });
});

describe('labels', () => {
  it('name the action, the notebook and the reason', () => {
    assert.equal(
      notificationLabel(waits(1), 'a.ipynb'),
      '“command 1” waits for you in a.ipynb: why'
    );
    assert.equal(
      notificationLabel(waits(1, { reason: '' }), 'a.ipynb'),
      '“command 1” waits for you in a.ipynb'
    );
    assert.equal(
      notificationLabel(waits(1, { agent: 'Claude Code' }), 'a.ipynb'),
      '“command 1” by Claude Code waits for you in a.ipynb: why'
    );
    assert.equal(agentLabel('Codex'), 'Codex wants to do this.');
    assert.equal(reasonLabel('it does'), 'It waits because it does.');
    assert.equal(sandboxLabel(false), 'It would not be sandboxed.');
    assert.equal(expiryLabel(65.9), 'Rejects itself in 1:05');
  });

  it('leave space for the reason beside a long command', () => {
    const long = {
      ...waits(1),
      action: action(1, 'run', { command: 'x'.repeat(500) })
    };
    const said = notificationLabel(long, 'a.ipynb');
    assert.ok(said.length < 140 && said.endsWith('a.ipynb: why'));
  });

  it('replace the reason by the error of a lost decision', () => {
    const failed = waits(1, { error: '403 Forbidden' });
    assert.match(notificationLabel(failed, 'a.ipynb'), /403 Forbidden$/);
  });
});
