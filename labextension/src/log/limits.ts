import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import type {
  ICommandBox,
  IFolderSettings,
  IRestriction
} from '../control/operations.js';
import { askKernel } from '../control/request.js';
import type { IObservation } from '../events/wire.js';

/** Limits of agents in the current notebook's kernel. */
export class LimitsModel extends KernelModel {
  /** Null until the kernel has replied. */
  sandbox: ICommandBox | null = null;

  /** What the administrator's policy restricts. */
  restrictions: readonly IRestriction[] = [];

  /** Settings of the folder that need the person's trust; null if there are none. */
  untrusted: IFolderSettings | null = null;

  /** Whether the person has trusted settings that hold after a restart. */
  hasTrusted = false;

  /** Trust the settings that are shown. */
  async trust(): Promise<void> {
    const digest = this.untrusted?.digest ?? '';
    await askKernel(this.kernel, { op: 'trust_folder', digest }).then(
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
    const { box, restrictions } = await askKernel(kernel, { op: 'status' });
    this.sandbox = box;
    this.restrictions = restrictions;
    const untrusted = await askKernel(kernel, { op: 'untrusted_settings' });
    this.untrusted = untrusted.settings.length > 0 ? untrusted : null;
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
