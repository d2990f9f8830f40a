import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import { askOnControl } from '../events/control.js';
import {
  isAction,
  isRecord,
  text,
  type IEventMessage
} from '../events/wire.js';
import type { IKernelEvents } from '../tokens.js';
import { trans } from '../translation.js';
import { readRestrictions, type IRestriction } from './restrictions.js';

/** Where the commands of agents run. */
export interface ISandbox {
  /** One of kernel, box, none, missing, refused. */
  readonly place: string;
  /** One of none, listed, ask, host; "" outside of a box. */
  readonly network: string;
}

/** Limits of agents in the current notebook's kernel. */
export class SandboxModel extends KernelModel {
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

  protected override follow(
    before: IKernelEvents | null,
    now: IKernelEvents | null
  ): void {
    before?.arrived.disconnect(this._onArrived, this);
    now?.arrived.connect(this._onArrived, this);
  }

  /** Only the first command shows whether there is a box. */
  private _onArrived(_: unknown, { event }: IEventMessage): void {
    const hasRun = !isAction(event) && event.observation === 'run';
    if (hasRun && !this._hasRun && this.isShown) {
      this._hasRun = true;
      void this.refresh();
    }
  }

  private _hasRun = false;
}

/** Parse the kernel's status; null if it does not say. */
export function readSandbox(
  fields: Readonly<Record<string, unknown>>
): ISandbox | null {
  const box = isRecord(fields.runtime) ? fields.runtime.box : null;
  return isRecord(box)
    ? { place: text(box, 'place'), network: text(box, 'network') }
    : null;
}

/** Name where commands run, in few words and in a sentence. */
export function sandboxLabels({ place, network }: ISandbox): {
  readonly label: string;
  readonly explanation: string;
} {
  switch (place) {
    case 'none':
      return {
        label: trans.__('no sandbox'),
        explanation: trans.__(
          'Agents’ commands have your files and your network. The setting sandbox changes that.'
        )
      };
    case 'missing':
      return {
        label: trans.__('no sandbox here'),
        explanation: trans.__(
          'This machine has no sandbox, so agents’ commands have your files and your network. %oh_doctor says why.'
        )
      };
    case 'refused':
      return {
        label: trans.__('no sandbox, no commands'),
        explanation: trans.__(
          'The setting requires a sandbox, which this machine does not have. %oh_doctor says why.'
        )
      };
    default:
      return {
        label: trans.__('sandbox, %1', networkLabel(network)),
        explanation:
          place === 'kernel'
            ? trans.__('The whole kernel runs in a sandbox.')
            : trans.__('Agents’ commands run in a sandbox.')
      };
  }
}

function networkLabel(network: string): string {
  const labels: Record<string, string> = {
    none: trans.__('no network'),
    listed: trans.__('listed hosts'),
    ask: trans.__('hosts you approve'),
    host: trans.__('whole network')
  };
  return labels[network] ?? network;
}
