import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Signal } from '@lumino/signaling';

import type { IKernelEvents, IOhRuntime, RuntimeState } from '../tokens.js';
import { KernelModel } from './model.js';

class Model extends KernelModel {
  protected async ask(): Promise<void> {
    return;
  }
  protected forget(): void {
    return;
  }
}

describe('KernelModel', () => {
  it('reports every state of the kernel, including a missing runtime', () => {
    let state: RuntimeState = 'no-kernel';
    const events = {
      get state() {
        return state;
      }
    } as IKernelEvents;
    const changed = new Signal<IKernelEvents, void>(events);
    Object.assign(events, { changed });
    const runtime = { current: events } as unknown as IOhRuntime;
    const currentChanged = new Signal<IOhRuntime, IKernelEvents | null>(
      runtime
    );
    Object.assign(runtime, { currentChanged });

    const model = new Model(runtime);
    currentChanged.emit(events);
    const seen: (RuntimeState | undefined)[] = [];
    model.changed.connect(() => seen.push(model.events?.state));
    for (state of ['no-kernel', 'unknown', 'unknown', 'not-loaded'] as const) {
      changed.emit();
    }
    assert.deepEqual(seen, ['unknown', 'not-loaded']);
  });
});
