import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { KernelMessage } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget, type PanelLayout } from '@lumino/widgets';

import { progressOf, type IProgress } from '../events/progress.js';
import { isAction, type IAction, type IEventMessage } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';

/** Milliseconds that a command may take before anything is shown of it. */
const DELAY_MS = 300;

/**
 * Shows below a cell what its magic has put out so far, and takes it away at the end.
 *
 * It is no output of the cell: what the notebook keeps is the magic's value alone.
 */
export class LiveCells {
  /**
   * @param runtime - Tells of notebooks as they come to the front.
   * @param notebooks - Where the cells are.
   * @param trans - The language of labels.
   */
  constructor(
    runtime: IOhRuntime,
    notebooks: INotebookTracker,
    trans: TranslationBundle
  ) {
    this._notebooks = notebooks;
    this._trans = trans;
    runtime.currentChanged.connect((_, events) => this._watch(events));
    this._watch(runtime.current);
  }

  /** Once in front, a notebook is watched until it is closed. */
  private _watch(events: IKernelEvents | null): void {
    if (!events || this._watched.has(events)) {
      return;
    }
    this._watched.add(events);
    let request = '';
    events.sessionContext.iopubMessage.connect((_, message) => {
      if (message.header.msg_type === 'execute_input') {
        request = parentOf(message);
      }
    });
    events.arrived.connect((_, message) => {
      const { event, generation } = message;
      if (isAction(event) && isPersons(event)) {
        const cell = this._cell(events, request);
        if (cell) {
          void this._show(events, { generation, id: event.id }, cell);
        }
      }
    });
  }

  /** The cell that was sent by a request. */
  private _cell(events: IKernelEvents, request: string): Cell | undefined {
    return this._notebooks
      .find(panel => panel.sessionContext === events.sessionContext)
      ?.content.widgets.find(
        cell =>
          'outputArea' in cell &&
          (cell as ICodeCell).outputArea.future?.msg.header.msg_id === request
      );
  }

  private async _show(
    events: IKernelEvents,
    place: Pick<IEventMessage, 'generation'> & Pick<IAction, 'id'>,
    cell: Cell
  ): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, DELAY_MS));
    const shown = new Widget({ node: document.createElement('pre') });
    shown.addClass('oh-LiveCell');
    shown.node.setAttribute('aria-label', this._trans.__('Output so far'));
    const look = (seen: IProgress | null) => events.look(place, seen);
    try {
      for await (const { text, state } of progressOf(look)) {
        if (cell.isDisposed) {
          return;
        }
        shown.node.textContent =
          state === 'queued' ? this._trans.__('queued') : text;
        if (!shown.parent && shown.node.textContent !== '') {
          (cell.layout as PanelLayout).addWidget(shown);
        }
      }
    } finally {
      shown.dispose();
    }
  }

  private readonly _notebooks: INotebookTracker;
  private readonly _trans: TranslationBundle;
  private readonly _watched = new WeakSet<IKernelEvents>();
}

type ICodeCell = Cell & {
  readonly outputArea: {
    readonly future?: { readonly msg: KernelMessage.IMessage } | null;
  };
};

function isPersons({ action, source }: IAction): boolean {
  return source === 'user' && (action === 'run' || action === 'run_ipython');
}

function parentOf(message: KernelMessage.IMessage): string {
  const parent = message.parent_header;
  return 'msg_id' in parent ? parent.msg_id : '';
}
