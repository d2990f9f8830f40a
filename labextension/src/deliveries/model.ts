import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import { askKernel } from '../control/request.js';
import {
  readDeliveries,
  type IDeliveries,
  type IDelivery
} from './deliveries.js';

/** The kernel waits some seconds for the receiver. */
const RESEND_TIMEOUT_MS = 30_000;

/** Undelivered requests of a store's webhook. */
export class DeliveriesModel extends KernelModel {
  /** Null until the kernel has replied. */
  deliveries: IDeliveries | null = null;

  /** Send failed deliveries again, one or all; with `force`, superseded ones too. */
  async resend(one: IDelivery | null, force = false): Promise<void> {
    await this._change({ op: 'resend_deliveries', force }, one);
  }

  /** Delete failed deliveries, one or all. */
  async discard(one: IDelivery | null): Promise<void> {
    await this._change({ op: 'discard_deliveries' }, one);
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    this.deliveries = readDeliveries(
      await askKernel(kernel, { op: 'deliveries' })
    );
  }

  protected override forget(): void {
    this.deliveries = null;
  }

  private async _change(
    request: { op: string; [field: string]: unknown },
    one: IDelivery | null
  ): Promise<void> {
    const ids = one === null ? null : [one.id];
    try {
      await askKernel(this.kernel, { ...request, ids }, RESEND_TIMEOUT_MS);
    } finally {
      await this.refresh();
    }
  }
}
