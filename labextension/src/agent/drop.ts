import type { Cell } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { MimeData } from '@lumino/coreutils';
import type { Drag } from '@lumino/dragdrop';

import { reasonOf } from '../events/errors.js';
import { trans } from '../translation.js';
import type { IContextItem } from './context.js';
import type { AgentModel } from './model.js';
import { cellItem } from './notebook.js';

/** Cells of a notebook, while JupyterLab drags them. */
const CELLS = 'internal:cells';

/** Paths of the file browser. */
const PATHS = 'application/x-jupyter-icontents';

const DROP_CLASS = 'oh-mod-drop';

/** Adds cells and files that are dropped on a node to the prompt. */
export class ContextDrop {
  constructor(
    private readonly _node: HTMLElement,
    private readonly _agents: AgentModel,
    private readonly _notebooks: INotebookTracker | null,
    private readonly _onDropped: () => void
  ) {
    this._node.dataset.drop = trans.__('Drop to add it to the prompt');
    for (const type of ['enter', 'over', 'leave']) {
      this._node.addEventListener(`lm-drag${type}`, this);
    }
    this._node.addEventListener('lm-drop', this);
  }

  handleEvent(event: Event): void {
    const drag = event as Drag.Event;
    if (event.type === 'lm-dragleave') {
      if (!this._node.contains(drag.relatedTarget as Node | null)) {
        this._setDropping(false);
      }
      return;
    }
    if (!this._accepts(drag.mimeData)) {
      return;
    }
    drag.preventDefault();
    drag.stopPropagation();
    drag.dropAction = drag.proposedAction;
    this._setDropping(event.type !== 'lm-drop');
    if (event.type === 'lm-drop') {
      void this._add(drag.mimeData);
    }
  }

  private _accepts(data: MimeData): boolean {
    return (
      this._agents.defaultAgent !== '' &&
      (data.hasData(CELLS) || data.hasData(PATHS))
    );
  }

  private async _add(data: MimeData): Promise<void> {
    const { box } = this._agents;
    try {
      const items = data.hasData(CELLS)
        ? cellItems(data.getData(CELLS) as readonly Cell[], this._notebooks)
        : await fileItems(data.getData(PATHS) as readonly string[], text =>
            this._agents.find(text)
          );
      box?.add(...items);
      this._onDropped();
    } catch (error) {
      if (box) {
        box.failure = reasonOf(error);
      }
    }
  }

  private _setDropping(isDropping: boolean): void {
    this._node.classList.toggle(DROP_CLASS, isDropping);
  }
}

function cellItems(
  cells: readonly Cell[],
  notebooks: INotebookTracker | null
): readonly IContextItem[] {
  return cells
    .map(cell => {
      const panel = notebooks?.find(({ content }) =>
        content.widgets.includes(cell)
      );
      return panel
        ? cellItem(panel, panel.content.widgets.indexOf(cell))
        : null;
    })
    .filter(item => item !== null);
}

/**
 * Return the files of the workspace that paths of the file browser name.
 * @param find - Finds files, with paths relative to the workspace.
 * @throws Error if a path is outside of the workspace, or a folder.
 */
export async function fileItems(
  paths: readonly string[],
  find: (text: string) => Promise<readonly IContextItem[]>
): Promise<readonly IContextItem[]> {
  return Promise.all(
    paths.map(async path => {
      const local = path.slice(path.indexOf(':') + 1);
      const name = local.slice(local.lastIndexOf('/') + 1);
      const [match] = (await find(name))
        .filter(item => item.kind === 'file')
        .filter(item => `/${local}`.endsWith(`/${item.name}`))
        .sort((one, other) => other.name.length - one.name.length);
      if (!match) {
        throw new Error(
          trans.__('%1 is not a file of the workspace of this kernel.', local)
        );
      }
      return match;
    })
  );
}
