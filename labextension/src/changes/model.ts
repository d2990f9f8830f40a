import type { Kernel } from '@jupyterlab/services';

import { KernelModel } from '../control/kernelmodel.js';
import type { IFileChange, IFileChanges } from '../control/operations.js';
import { askKernel } from '../control/request.js';
import { contentsOf, withUndone, type Contents } from './changes.js';

const SETTLED_MESSAGE = 'oh_jupyter_settled';

/** Comparing a large workspace takes time. */
const TIMEOUT_MS = 60_000;

/** Files that changed in a kernel's session, updated when something happens there. */
export class ChangesModel extends KernelModel {
  /** Null until the kernel has replied. */
  changes: IFileChanges | null = null;

  async contents(file: IFileChange): Promise<Contents> {
    const reply = await askKernel(
      this.kernel,
      { op: 'change', path: file.path },
      TIMEOUT_MS
    );
    return contentsOf(reply, file);
  }

  /**
   * Undo or redo the last edit of a file, or the changes that commands made.
   * @param everything - Also overwrite later changes of others.
   * @returns Why the file was left unchanged because of others, or "".
   */
  async step(
    file: IFileChange,
    redo: boolean,
    everything = false
  ): Promise<string> {
    this._undone.add(file.path);
    const done = await askKernel(
      this.kernel,
      { op: 'undo_change', path: file.path, redo, everything },
      TIMEOUT_MS
    );
    await this.refresh();
    if (done.failure) {
      throw new Error(done.failure);
    }
    return done.kept;
  }

  protected override async ask(
    kernel: Kernel.IKernelConnection
  ): Promise<void> {
    const current = await askKernel(kernel, { op: 'changes' }, TIMEOUT_MS);
    const before = this.changes?.files ?? [];
    const files = withUndone(before, current.files, this._undone);
    this.changes = { ...current, files };
  }

  protected override forget(): void {
    this.changes = null;
    this._undone.clear();
  }

  /** Changes of commands are known only some time after the commands end. */
  protected override onMessage(type: string): void {
    if (this.isShown && type === SETTLED_MESSAGE) {
      void this.refresh();
    }
  }

  protected override onObservation(): void {
    void this.refresh();
  }

  private readonly _undone = new Set<string>();
}
