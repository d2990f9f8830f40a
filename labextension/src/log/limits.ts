import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import { askOnControl } from '../events/control.js';
import type { IObservation } from '../events/wire.js';
import { readRestrictions, type IRestriction } from './restrictions.js';
import { readSandbox, type ISandbox } from './sandbox.js';

/** Limits of agents in the current notebook's kernel. */
export class LimitsModel extends KernelModel {
  /** Null until the kernel has replied. */
  sandbox: ISandbox | null = null;

  /** What the administrator's policy restricts. */
  restrictions: readonly IRestriction[] = [];

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const { fields } = await askOnControl(kernel, { op: 'status' });
    this.sandbox = readSandbox(fields);
    this.restrictions = readRestrictions(fields);
  }

  protected override forget(): void {
    this.sandbox = null;
    this.restrictions = [];
    this._hasRun = false;
  }

  /** Only the first command shows whether there is a box. */
  protected override onObservation({ observation }: IObservation): void {
    if (observation === 'run' && !this._hasRun) {
      this._hasRun = true;
      void this.refresh();
    }
  }

  private _hasRun = false;
}
