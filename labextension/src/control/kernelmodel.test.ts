import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Signal } from '@lumino/signaling';

import type { IKernelEvents, IOhRuntime, RuntimeState } from '../tokens.js';
import { KernelModel } from './kernelmodel.js';

class Model extends KernelModel {
  protected async ask(): Promise<void> {
    return;
  }
  protected forget(): void {
    return;
  }
}

/** A model, and the signal of its kernel's events. */
function followed(events: Pick<IKernelEvents, 'state' | 'name'>) {
  const changed = new Signal<object, void>(events);
  Object.assign(events, { changed });
  const runtime = { current: events } as unknown as IOhRuntime;
  const currentChanged = new Signal<IOhRuntime, IKernelEvents | null>(runtime);
  Object.assign(runtime, { currentChanged });
  const model = new Model(runtime);
  currentChanged.emit(events as IKernelEvents);
  return { model, changed };
}

describe('KernelModel', () => {
  it('reports a new name of the notebook', () => {
    const events = { state: 'ready' as RuntimeState, name: 'a.ipynb' };
    const { model, changed } = followed(events);
    const seen: (string | undefined)[] = [];
    model.changed.connect(() => seen.push(model.events?.name));
    changed.emit();
    events.name = 'b.ipynb';
    changed.emit();
    changed.emit();
    assert.deepEqual(seen, ['b.ipynb']);
  });

  it('reports every state of the kernel, including a missing runtime', () => {
    let state: RuntimeState = 'no-kernel';
    const { model, changed } = followed({
      name: 'a.ipynb',
      get state() {
        return state;
      }
    });
    const seen: (RuntimeState | undefined)[] = [];
    model.changed.connect(() => seen.push(model.events?.state));
    for (state of ['no-kernel', 'unknown', 'unknown', 'not-loaded'] as const) {
      changed.emit();
    }
    assert.deepEqual(seen, ['unknown', 'not-loaded']);
  });
});
