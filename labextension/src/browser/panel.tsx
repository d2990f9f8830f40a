import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import { trans } from '../translation.js';
import { BrowserModel } from './model.js';
import { BrowserView } from './view.js';

/** Tab with the browser page of the current notebook. */
export class BrowserPanel extends ReactWidget {
  constructor(private readonly _model: BrowserModel) {
    super();
    this.addClass('oh-Browser');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Browser'));
    document.addEventListener('visibilitychange', this._onVisibility);
  }

  override dispose(): void {
    document.removeEventListener('visibilitychange', this._onVisibility);
    this._model.dispose();
    super.dispose();
  }

  protected override render(): React.ReactElement {
    return (
      <UseSignal signal={this._model.changed}>
        {() => <BrowserView model={this._model} />}
      </UseSignal>
    );
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._onVisibility();
  }

  protected override onBeforeDetach(message: Message): void {
    this._model.isWatched = false;
    super.onBeforeDetach(message);
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._onVisibility();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._model.isWatched = false;
  }

  private readonly _onVisibility = (): void => {
    this._model.isWatched =
      this.isVisible && document.visibilityState === 'visible';
  };
}
