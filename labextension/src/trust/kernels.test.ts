import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import type { Kernel, KernelSpec } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { HeldKernels, isSandboxed } from './kernels.js';

const SPECS = {
  default: 'python3',
  kernelspecs: {
    python3: { metadata: { debugger: true } },
    boxed: {
      metadata: {
        kernel_provisioner: { provisioner_name: 'oh-jupyter-sandbox' }
      }
    }
  }
} as unknown as KernelSpec.ISpecModels;

function connection(id: string, name: string) {
  const kernel = {
    id,
    name,
    handleComms: true,
    reconnected: 0,
    targets: [] as string[],
    registerCommTarget: (target: string) =>
      kernel.handleComms && kernel.targets.push(target),
    reconnect: async () => void kernel.reconnected++,
    requestCommInfo: async () => ({
      content: {
        status: 'ok',
        comms: { one: { target_name: 'jupyter.widget' } }
      }
    })
  };
  const iopubMessage = new Signal<object, object>(kernel);
  return Object.assign(kernel, { iopubMessage });
}

function connected(name: string) {
  const kernel = connection('id', name);
  const manager = { connectTo: () => kernel } as unknown as Kernel.IManager;
  const held = new HeldKernels(manager, () => SPECS);
  manager.connectTo({ model: { id: 'id', name } });
  return { kernel, held, typed: kernel as unknown as Kernel.IKernelConnection };
}

describe('isSandboxed', () => {
  it('looks at the provisioner of the kernelspec', () => {
    assert.ok(isSandboxed('boxed', SPECS));
    assert.ok(!isSandboxed('python3', SPECS));
  });

  it('knows the usual name before the server has listed its kernelspecs', () => {
    assert.ok(isSandboxed('python3-sandboxed', null));
    assert.ok(!isSandboxed('python3', null));
  });
});

describe('HeldKernels', () => {
  it('keeps comms of a sandboxed kernel away until it is allowed', async () => {
    const { kernel, held, typed } = connected('boxed');
    assert.equal(kernel.handleComms, false);
    assert.deepEqual((await kernel.requestCommInfo()).content.comms, {});
    assert.ok(!held.isAsking(typed));
    kernel.iopubMessage.emit({ header: { msg_type: 'comm_open' } });
    assert.ok(held.isAsking(typed));
    typed.registerCommTarget('jupyter.widget', () => undefined);
    assert.deepEqual(kernel.targets, ['jupyter.widget']);
    assert.equal(kernel.handleComms, false);
    held.allow(typed);
    assert.equal(kernel.handleComms, true);
    assert.equal(kernel.reconnected, 1);
    assert.ok(!held.isHeld(typed));
    assert.ok('one' in (await kernel.requestCommInfo()).content.comms);
  });

  it('leaves other kernels alone', () => {
    const { kernel, held, typed } = connected('python3');
    assert.equal(kernel.handleComms, true);
    assert.ok(!held.isHeld(typed));
  });
});
