import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { Signal } from '@lumino/signaling';

import type { IEventMessage, IObservation, WireEvent } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime, RuntimeState } from '../tokens.js';
import { KernelModel } from './kernelmodel.js';

class Model extends KernelModel {
  readonly seen: string[] = [];

  protected async ask(): Promise<void> {
    return;
  }
  protected forget(): void {
    return;
  }
  protected override onObservation({ observation }: IObservation): void {
    this.seen.push(observation);
  }
  protected override onMessage(type: string, content: unknown): void {
    this.seen.push(`${type} ${String(content)}`);
  }
}

/** A model, and the signals of its kernel's events. */
function followed(events: Pick<IKernelEvents, 'state' | 'name'>) {
  const changed = new Signal<object, void>(events);
  const arrived = new Signal<object, IEventMessage>(events);
  const iopubMessage = new Signal<object, object>(events);
  const refresh = async () => undefined;
  const sessionContext = { iopubMessage };
  Object.assign(events, { changed, arrived, refresh, sessionContext });
  const runtime = { current: events } as unknown as IOhRuntime;
  const currentChanged = new Signal<IOhRuntime, IKernelEvents | null>(runtime);
  Object.assign(runtime, { currentChanged });
  const model = new Model(runtime);
  currentChanged.emit(events as IKernelEvents);
  return { model, changed, arrived, iopubMessage, currentChanged };
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

  it('hands on Observations while it is shown, and messages always', () => {
    const { model, arrived, iopubMessage, currentChanged } = followed({
      state: 'unknown',
      name: 'a.ipynb'
    });
    const send = (event: object) =>
      arrived.emit({ event: event as WireEvent } as IEventMessage);
    send({ observation: 'read' });
    model.isShown = true;
    send({ action: 'run' });
    send({ observation: 'run' });
    iopubMessage.emit({ header: { msg_type: 'settled' }, content: 1 });
    currentChanged.emit(null);
    send({ observation: 'edit' });
    assert.deepEqual(model.seen, ['run', 'settled 1']);
  });
});
