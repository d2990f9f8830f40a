import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import type { KernelModel } from './model.js';

/** A tab that shows what a model knows, and has it asked while a person looks. */
export abstract class KernelPanel<T extends KernelModel> extends ReactWidget {
  /** @param model - Ends with the panel. */
  constructor(protected readonly model: T) {
    super();
  }

  override dispose(): void {
    this.model.dispose();
    super.dispose();
  }

  /** What there is to see. */
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
