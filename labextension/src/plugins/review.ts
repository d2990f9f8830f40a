import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { PageConfig, PathExt } from '@jupyterlab/coreutils';
import {
  IDocumentManager,
  IDocumentWidgetOpener
} from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Kernel } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { CommandRegistry } from '@lumino/commands';

import { prepareAnnouncements } from '../announce.js';
import { askKernel } from '../control/request.js';
import { CommandIDs } from '../ids.js';
import type { IKeepRecord, IUndoRecord } from '../review/document.js';
import { Reviews } from '../review/reviews.js';
import { ReviewStore } from '../review/store.js';
import type { ReviewView } from '../review/view.js';
import { IOhRuntime, IOpenDocuments } from '../tokens.js';
import { trans } from '../translation.js';
import { forEachDocument } from './documents.js';
import {
  definePlugin,
  followSettings,
  listCommands,
  NO_ARGS
} from './registration.js';

const ID = 'oh-jupyter:review';

/** Commands by which a person saves; JupyterLab saves automatically without a command. */
const SAVE_COMMANDS: readonly string[] = [
  'docmanager:save',
  'docmanager:save-all',
  'docmanager:save-as'
];

/** Shows what agents change in open documents, to be kept or undone piece by piece. */
export const reviewPlugin = definePlugin({
  id: ID,
  description: 'Shows the changes of agents in cells and editors for review.',
  requires: [
    IOhRuntime,
    IOpenDocuments,
    IDocumentManager,
    IDocumentWidgetOpener
  ],
  optional: [ICommandPalette, ISettingRegistry],
  activate: (app, runtime, documents, manager, opener, palette, registry) => {
    prepareAnnouncements();
    const store = new ReviewStore(
      window.localStorage,
      app.serviceManager.serverSettings.baseUrl
    );
    const kernelFor = (context: DocumentRegistry.Context) =>
      kernelOf(app, manager, context) ??
      runtime.current?.sessionContext.session?.kernel;
    const onKeep = (context: DocumentRegistry.Context, record: IKeepRecord) => {
      const kernel = kernelFor(context);
      if (kernel) {
        void recordKeep(kernel, record);
      }
    };
    const onUndo = (context: DocumentRegistry.Context, record: IUndoRecord) => {
      const kernel = kernelFor(context);
      if (kernel) {
        void recordUndo(kernel, record);
      }
    };
    const runsWhen = async (
      context: DocumentRegistry.Context,
      before: string
    ) => {
      const kernel = kernelFor(context);
      return kernel ? await askRunsWhen(kernel, context.path, before) : '';
    };
    const reviews = new Reviews(documents, store, onUndo, onKeep, runsWhen);
    reviews.isEnabled = registry === null;
    void followSettings(registry, ID, settings => {
      reviews.isEnabled = settings.get('review').composite === 'on';
    });
    forEachDocument(app, manager, opener, (widget, context) =>
      reviews.add(widget, context)
    );
    keepOnSave(app, manager, reviews);
    addCommands(app, reviews, palette);
  }
});

/** Keep all changes of documents that the person saves. */
function keepOnSave(
  { commands, shell }: JupyterFrontEnd,
  manager: IDocumentManager,
  reviews: Reviews
): void {
  commands.commandExecuted.connect(
    (_, { id, result }: CommandRegistry.ICommandExecutedArgs) => {
      if (!SAVE_COMMANDS.includes(id)) {
        return;
      }
      const isAll = id === 'docmanager:save-all';
      const widgets = isAll
        ? [...shell.widgets('main')]
        : [shell.currentWidget];
      const contexts = widgets
        .map(widget => widget && manager.contextForWidget(widget))
        .filter(context => context !== undefined && context !== null);
      void result.then(
        () =>
          contexts
            .filter(context => !context.isDisposed && !context.model.dirty)
            .forEach(context => reviews.keepAll(context)),
        () => undefined
      );
    }
  );
}

function addCommands(
  { commands, shell }: JupyterFrontEnd,
  reviews: Reviews,
  palette: ICommandPalette | null
): void {
  const current = () => {
    const view = reviews.viewOf(shell.currentWidget);
    return view?.document.review.isEmpty ? null : view;
  };
  const add = (
    id: string,
    label: string,
    caption: string,
    execute: (view: ReviewView) => void
  ) =>
    commands.addCommand(id, {
      label,
      caption,
      describedBy: NO_ARGS,
      isEnabled: () => current() !== null,
      execute: () => {
        const view = current();
        if (view) {
          execute(view);
        }
      }
    });
  add(
    CommandIDs.reviewNext,
    trans.__('Agent: Go to the Next Change'),
    trans.__('Show the next change of an agent in this document'),
    view => view.step(1)
  );
  add(
    CommandIDs.reviewPrevious,
    trans.__('Agent: Go to the Previous Change'),
    trans.__('Show the previous change of an agent in this document'),
    view => view.step(-1)
  );
  add(
    CommandIDs.reviewKeep,
    trans.__('Agent: Keep the Change'),
    trans.__('Keep the change at the cursor, or those of the selected cell'),
    view => view.keep()
  );
  add(
    CommandIDs.reviewUndo,
    trans.__('Agent: Undo the Change'),
    trans.__('Undo the change at the cursor, or those of the selected cell'),
    view => view.undo()
  );
  add(
    CommandIDs.reviewKeepAll,
    trans.__('Agent: Keep All Changes'),
    trans.__('Keep all changes of agents in this document'),
    view => view.document.keep(null)
  );
  add(
    CommandIDs.reviewUndoAll,
    trans.__('Agent: Undo All Changes'),
    trans.__('Undo all changes of agents in this document'),
    view => view.undoAll(null)
  );
  listCommands(
    palette,
    CommandIDs.reviewNext,
    CommandIDs.reviewPrevious,
    CommandIDs.reviewKeep,
    CommandIDs.reviewUndo,
    CommandIDs.reviewKeepAll,
    CommandIDs.reviewUndoAll
  );
}

/** Return the kernel of a notebook, which has the log of its agents. */
function kernelOf(
  { shell }: JupyterFrontEnd,
  manager: IDocumentManager,
  context: DocumentRegistry.Context
): Kernel.IKernelConnection | null {
  for (const widget of shell.widgets('main')) {
    if (
      'sessionContext' in widget &&
      manager.contextForWidget(widget) === context
    ) {
      return context.sessionContext.session?.kernel ?? null;
    }
  }
  return null;
}

/** Note for the agents what was kept. */
async function recordKeep(
  kernel: Kernel.IKernelConnection,
  { path, count }: IKeepRecord
): Promise<void> {
  const name = PathExt.basename(path);
  await askKernel(kernel, { op: 'record_keep', name, count }).catch(
    () => undefined
  );
}

/** Ask what a person does that runs a changed file; "" if nothing, or without a runtime. */
async function askRunsWhen(
  kernel: Kernel.IKernelConnection,
  path: string,
  before: string
): Promise<string> {
  const when = await askKernel(kernel, {
    op: 'runs_when',
    path: pathInKernel(path),
    before
  }).catch(() => null);
  return when ?? '';
}

/** Return the path by which the kernel knows a file. */
function pathInKernel(path: string): string {
  const root = PageConfig.getOption('serverRoot');
  return root ? `${root}/${path}` : path;
}

/** Record an undo in the log as the person's Action; a kernel without a runtime has no log. */
async function recordUndo(
  kernel: Kernel.IKernelConnection,
  { path, count, cells, diff }: IUndoRecord
): Promise<void> {
  const name = PathExt.basename(path);
  const changes = count === 1 ? '1 change' : `${count} changes`;
  const where =
    cells.length === 0
      ? ''
      : ` in cell${cells.length === 1 ? '' : 's'} ${cells.join(', ')}`;
  const args = { path: pathInKernel(path), command: 'undo_edit' };
  await askKernel(kernel, {
    op: 'record_edit',
    source: 'user',
    action: { action: 'edit', args },
    content: `The person undid ${changes}${where} of ${name}.`,
    diff
  }).catch(() => undefined);
}
