import { Widget } from '@lumino/widgets';

import { button } from '../button.js';
import { trans } from '../translation.js';

/** Bar above a document whose kernel may not run scripts in the page. */
export class ScriptNotice extends Widget {
  constructor(onAllow: () => void) {
    super();
    this.addClass('oh-ScriptNotice');
    this.node.setAttribute('role', 'status');
    const text = document.createElement('span');
    text.textContent = trans.__(
      'Scripts in outputs of this sandboxed kernel do not run: here they could change files outside of the sandbox.'
    );
    this.node.append(
      text,
      button(
        trans.__('Allow scripts'),
        trans.__(
          'Run scripts in outputs of this kernel, which plots and widgets need, until the page is reloaded'
        ),
        onAllow
      )
    );
  }
}
