import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { KernelMessage } from '@jupyterlab/services';
import { Widget, type PanelLayout } from '@lumino/widgets';

import { panelOf } from './notebook.js';
import type { EventRef } from '../events/card.js';
import type { IProgress } from '../control/operations.js';
import { progressOf } from '../events/progress.js';
import { isAction, type IAction } from '../events/wire.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';

/** Delay before the output of a command is shown. */
const DELAY_MS = 300;

/** Shows the output of a running magic below its cell; it is no output that the notebook keeps. */
export class LiveOutputs {
  constructor(
    runtime: IOhRuntime,
    private readonly _notebooks: INotebookTracker
  ) {
    runtime.currentChanged.connect((_, events) => this._watch(events));
    this._watch(runtime.current);
  }

  /** Follow a notebook until it is closed. */
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
      if (isAction(event) && isByPerson(event)) {
        const cell = this._cell(events, request);
        if (cell) {
          void this._show(events, { generation, id: event.id }, cell);
        }
      }
    });
  }

  /** Find the cell that sent a request. */
  private _cell(events: IKernelEvents, request: string): Cell | undefined {
    return panelOf(this._notebooks, events)?.content.widgets.find(
      cell =>
        'outputArea' in cell &&
        (cell as ICodeCell).outputArea.future?.msg.header.msg_id === request
    );
  }

  private async _show(
    events: IKernelEvents,
    ref: EventRef,
    cell: Cell
  ): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, DELAY_MS));
    const shown = new Widget({ node: document.createElement('pre') });
    shown.addClass('oh-LiveCell');
    shown.node.setAttribute('aria-label', trans.__('Output so far'));
    const look = (seen: IProgress | null) => events.look(ref, seen);
    try {
      for await (const { text, state } of progressOf(look)) {
        if (cell.isDisposed) {
          return;
        }
        shown.node.textContent = state === 'queued' ? trans.__('queued') : text;
        if (!shown.parent && shown.node.textContent !== '') {
          (cell.layout as PanelLayout).addWidget(shown);
        }
      }
    } finally {
      shown.dispose();
    }
  }

  private readonly _watched = new WeakSet<IKernelEvents>();
}

type ICodeCell = Cell & {
  readonly outputArea: {
    readonly future?: { readonly msg: KernelMessage.IMessage } | null;
  };
};

function isByPerson({ action, source }: IAction): boolean {
  return source === 'user' && (action === 'run' || action === 'run_ipython');
}

function parentOf(message: KernelMessage.IMessage): string {
  const parent = message.parent_header;
  return 'msg_id' in parent ? parent.msg_id : '';
}
