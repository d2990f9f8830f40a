import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import type { KernelModel } from './kernelmodel.js';

/** Tab that shows a model, which makes requests only while the tab is visible. */
export abstract class KernelPanel<T extends KernelModel> extends ReactWidget {
  constructor(protected readonly model: T) {
    super();
  }

  override dispose(): void {
    this.model.dispose();
    super.dispose();
  }

  protected abstract view(): React.ReactElement;

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.model.isShown = this.isVisible;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.model.isShown = true;
  }

  protected override onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.model.isShown = false;
  }

  protected override render(): React.ReactElement {
    return (
      <UseSignal signal={this.model.changed}>{() => this.view()}</UseSignal>
    );
  }
}
