import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import type {
  IDelivery,
  IDeliveryList,
  OperationRequest
} from '../control/operations.js';
import { askKernel } from '../control/request.js';

/** The kernel waits some seconds for the receiver. */
const RESEND_TIMEOUT_MS = 30_000;

/** Undelivered requests of a store's webhook. */
export class DeliveriesModel extends KernelModel {
  /** Null until the kernel has replied. */
  deliveries: IDeliveryList | null = null;

  /** Send failed deliveries again, one or all; with `force`, superseded ones too. */
  async resend(one: IDelivery | null, force = false): Promise<void> {
    const ids = idsOf(one);
    await this._change({ op: 'resend_deliveries', force, ids });
  }

  /** Delete failed deliveries, one or all. */
  async discard(one: IDelivery | null): Promise<void> {
    const ids = idsOf(one);
    await this._change({ op: 'discard_deliveries', ids });
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    this.deliveries = await askKernel(kernel, { op: 'deliveries' });
  }

  protected override forget(): void {
    this.deliveries = null;
  }

  private async _change(request: OperationRequest): Promise<void> {
    try {
      await askKernel(this.kernel, request, RESEND_TIMEOUT_MS);
    } finally {
      await this.refresh();
    }
  }
}

/** Return the ids of one delivery; null for all. */
function idsOf(one: IDelivery | null): readonly IDelivery['id'][] | null {
  return one === null ? null : [one.id];
}
