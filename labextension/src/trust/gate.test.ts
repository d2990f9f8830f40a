import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { gate, losesScripts, quiet } from './gate.js';

describe('gate', () => {
  it('takes trust away while outputs are held', async () => {
    const trusted: boolean[] = [];
    const registry = {
      sanitizer: { sanitize: (html: string) => html },
      preferredMimeType: (_: unknown, safe: string) => safe,
      createRenderer: () => ({
        renderModel: async (model: { trusted: boolean }) =>
          void trusted.push(model.trusted)
      })
    } as unknown as IRenderMimeRegistry;
    let isHeld = true;
    let asked = 0;
    gate(
      registry,
      () => isHeld,
      () => asked++
    );
    const model = { trusted: true, data: {} } as never;
    assert.equal(registry.preferredMimeType({}, 'any'), 'ensure');
    await registry.createRenderer('text/html').renderModel(model);
    isHeld = false;
    assert.equal(registry.preferredMimeType({}, 'any'), 'any');
    await registry.createRenderer('text/html').renderModel(model);
    assert.deepEqual(trusted, [false, true]);
    assert.equal(asked, 1);
  });
});

describe('losesScripts', () => {
  it('sees active HTML, and outputs that need trust', () => {
    const html = (text: string) => ({ 'text/html': text });
    const type = 'text/html';
    assert.ok(losesScripts(html('<script>1</script>'), type, type));
    assert.ok(losesScripts(html('<img src=x onerror=run()>'), type, type));
    assert.ok(!losesScripts(html('<b>script on</b>'), type, type));
    assert.ok(losesScripts({}, 'application/javascript', 'text/plain'));
  });
});

describe('quiet', () => {
  it('leaves out types that other extensions draw', () => {
    const data = { 'application/vnd.vega.v5+json': {}, 'text/plain': 'Chart' };
    assert.deepEqual(quiet(data), { 'text/plain': 'Chart' });
  });
});
