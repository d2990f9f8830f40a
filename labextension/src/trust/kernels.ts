/** Sandboxed kernels, and whether a person allows their scripts in the page. */
import type { Kernel, KernelSpec } from '@jupyterlab/services';
import { Signal, type ISignal } from '@lumino/signaling';

import { isRecord } from '../events/wire.js';

/** Provisioner of a kernel in a sandbox, and the usual name of its kernelspec. */
const PROVISIONER = 'oh-jupyter-sandbox';
const KERNEL_NAME = 'python3-sandboxed';

const NO_COMMS = {
  content: { status: 'ok', comms: {} }
} as unknown as Awaited<
  ReturnType<Kernel.IKernelConnection['requestCommInfo']>
>;

/** Return whether a kernelspec runs its kernels in a sandbox; the server knows, not the kernel. */
export function isSandboxed(
  name: string,
  specs: KernelSpec.ISpecModels | null
): boolean {
  const metadata: unknown = specs?.kernelspecs[name]?.metadata;
  if (!isRecord(metadata)) {
    return name === KERNEL_NAME;
  }
  const provisioner = metadata.kernel_provisioner;
  return isRecord(provisioner) && provisioner.provisioner_name === PROVISIONER;
}

/** Let a connection without comms register targets, for the time when it has comms. */
function keepTargets(kernel: Kernel.IKernelConnection): void {
  const register = kernel.registerCommTarget.bind(kernel);
  kernel.registerCommTarget = (name, callback) => {
    const handles = kernel.handleComms;
    kernel.handleComms = true;
    register(name, callback);
    kernel.handleComms = handles;
  };
}

/** Kernels whose outputs stay without scripts until a person allows them. */
export class HeldKernels {
  constructor(
    private readonly _kernels: Pick<Kernel.IManager, 'connectTo'>,
    private readonly _specs: () => KernelSpec.ISpecModels | null
  ) {
    const connectTo = _kernels.connectTo.bind(_kernels);
    this._kernels.connectTo = options => {
      const kernel = connectTo(options);
      this._guard(kernel);
      return kernel;
    };
  }

  /** Emitted with a kernel's id when its scripts are allowed, or when it uses one. */
  get changed(): ISignal<this, string> {
    return this._changed;
  }

  isHeld(kernel: Pick<Kernel.IKernelConnection, 'id' | 'name'>): boolean {
    return (
      !this._allowed.has(kernel.id) && isSandboxed(kernel.name, this._specs())
    );
  }

  /** Return whether a held kernel has used scripts. */
  isAsking(kernel: Pick<Kernel.IKernelConnection, 'id' | 'name'>): boolean {
    return this._asking.has(kernel.id) && this.isHeld(kernel);
  }

  ask(id: string): void {
    if (!this._asking.has(id)) {
      this._asking.add(id);
      this._changed.emit(id);
    }
  }

  /** Allow a kernel's scripts, and let its widgets load. */
  allow(kernel: Kernel.IKernelConnection): void {
    this._allowed.add(kernel.id);
    if (this._withoutComms.has(kernel)) {
      kernel.handleComms = true;
      // The manager of widgets loads them when a kernel is connected.
      void kernel.reconnect().catch(() => undefined);
    }
    this._changed.emit(kernel.id);
  }

  /** Keep a kernel's comms away, by which it starts scripts of widgets without any output. */
  private _guard(kernel: Kernel.IKernelConnection): void {
    if (!this.isHeld(kernel)) {
      return;
    }
    if (kernel.handleComms) {
      this._withoutComms.add(kernel);
      kernel.handleComms = false;
      keepTargets(kernel);
    }
    const request = kernel.requestCommInfo.bind(kernel);
    kernel.requestCommInfo = async content =>
      this.isHeld(kernel) ? NO_COMMS : request(content);
    kernel.iopubMessage.connect((_, message) => {
      if (message.header.msg_type === 'comm_open') {
        this.ask(kernel.id);
      }
    });
  }

  private readonly _allowed = new Set<string>();
  private readonly _asking = new Set<string>();
  private readonly _withoutComms = new WeakSet<Kernel.IKernelConnection>();
  private readonly _changed = new Signal<this, string>(this);
}
