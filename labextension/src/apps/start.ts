import type { TranslationBundle } from '@jupyterlab/translation';
import { render, type VNode } from 'preact';
import * as React from 'react';

import { setTranslation } from '../translation.js';
import { Host } from './host.js';

/** Apps are in English: their host has no translations of them. */
const ENGLISH = {
  __: (text: string, ...values: unknown[]) => filled(text, values),
  _n: (one: string, many: string, count: number, ...values: unknown[]) =>
    filled(count === 1 ? one : many, [count, ...values])
} as unknown as TranslationBundle;

function filled(text: string, values: readonly unknown[]): string {
  return text.replace(/%(\d)/g, (_, number) => String(values[number - 1]));
}

/** Draw an app and connect it with its host. */
export function start(
  name: string,
  App: React.ComponentType<{ host: Host }>
): void {
  setTranslation(ENGLISH);
  const root = document.getElementById('root')!;
  const host = new Host(name);
  // The bundle has Preact under React's name.
  render(React.createElement(App, { host }) as unknown as VNode, root);
  void host.start(root);
}
