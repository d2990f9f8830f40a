import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import { askOnControl } from '../events/control.js';
import type { IObservation } from '../events/wire.js';
import { readRestrictions, type IRestriction } from './restrictions.js';
import { readSandbox, type ISandbox } from './sandbox.js';
import { readUntrusted, type IUntrustedSettings } from './untrusted.js';

/** Limits of agents in the current notebook's kernel. */
export class LimitsModel extends KernelModel {
  /** Null until the kernel has replied. */
  sandbox: ISandbox | null = null;

  /** What the administrator's policy restricts. */
  restrictions: readonly IRestriction[] = [];

  /** Settings of the folder that need the person's trust; null if there are none. */
  untrusted: IUntrustedSettings | null = null;

  /** Whether the person has trusted settings that hold after a restart. */
  hasTrusted = false;

  /** Trust the settings that are shown. */
  async trust(): Promise<void> {
    const digest = this.untrusted?.digest;
    await askOnControl(this.kernel, { op: 'trust_folder', digest }).then(
      () => {
        this.hasTrusted = true;
      },
      // The file has changed: what is shown then is what it says now.
      () => undefined
    );
    await this.refresh();
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const { fields } = await askOnControl(kernel, { op: 'status' });
    this.sandbox = readSandbox(fields);
    this.restrictions = readRestrictions(fields);
    const untrusted = await askOnControl(kernel, { op: 'untrusted_settings' });
    this.untrusted = readUntrusted(untrusted.fields);
  }

  protected override forget(): void {
    this.sandbox = null;
    this.restrictions = [];
    this.untrusted = null;
    this.hasTrusted = false;
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
