import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toUrl, call, keyCall, queued } from './keys.js';

const KEY = { ctrlKey: false, altKey: false, metaKey: false, shiftKey: false };

test('letters are typed, other keys are pressed with their modifiers', () => {
  assert.equal(keyCall({ ...KEY, key: 'ä' }), 'keyboard_type("ä")');
  assert.equal(keyCall({ ...KEY, key: '"' }), 'keyboard_type("\\"")');
  assert.equal(keyCall({ ...KEY, key: 'Enter' }), 'keyboard_press("Enter")');
  assert.equal(
    keyCall({ ...KEY, key: 'Tab', shiftKey: true }),
    'keyboard_press("Shift+Tab")'
  );
  assert.equal(
    keyCall({ ...KEY, key: 'a', ctrlKey: true }),
    'keyboard_press("Control+a")'
  );
  // AltGr on Windows.
  assert.equal(
    keyCall({ ...KEY, key: '@', ctrlKey: true, altKey: true }),
    'keyboard_type("@")'
  );
  assert.equal(keyCall({ ...KEY, key: 'Shift', shiftKey: true }), null);
  assert.equal(keyCall({ ...KEY, key: 'v', ctrlKey: true }), null);
});

test('queued calls are merged', () => {
  const calls = [
    call('mouse_move', 1, 1),
    call('mouse_move', 2, 2),
    call('mouse_click', 3, 3, 'left'),
    call('keyboard_type', 'a'),
    call('keyboard_type', '"b'),
    call('keyboard_press', 'Enter')
  ];
  assert.deepEqual(calls.reduce<string[]>(queued, []), [
    'mouse_click(3, 3, "left")',
    'keyboard_type("a\\"b")',
    'keyboard_press("Enter")'
  ]);
});

test('addresses need no scheme', () => {
  assert.equal(toUrl(' example.org/a '), 'https://example.org/a');
  assert.equal(toUrl('localhost:8888'), 'http://localhost:8888');
  assert.equal(toUrl('about:blank'), 'about:blank');
});
