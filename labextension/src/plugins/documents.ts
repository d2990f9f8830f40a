import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import {
  IDocumentManager,
  IDocumentWidgetOpener
} from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Event } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';

import type { OpenDocument } from '../documents/context.js';
import type { ITyping } from '../documents/document.js';
import { OpenDocuments } from '../documents/documents.js';
import { UnsavedReporter } from '../documents/reporter.js';
import { isAction, text } from '../events/wire.js';
import { IOhRuntime, IOpenDocuments } from '../tokens.js';
import { trans } from '../translation.js';
import { definePlugin } from './registration.js';

/** Server events: Jupyter's after a save through the server, and ours on documents. */
const CONTENTS_EVENT =
  'https://events.jupyter.org/jupyter_server/contents_service/v1';
const DOCUMENTS_EVENT = 'urn:oh-jupyter:documents:v1';

/** Milliseconds; longer than usual, because it asks the person to look at a tab. */
const TOAST = { autoClose: 30_000 };

/** Merges changed files into open tabs, and saves tabs before agents read the files. */
export const documentsPlugin = definePlugin({
  id: 'oh-jupyter:documents',
  description: 'Merges the changes of agents into the tabs of open files.',
  requires: [IOhRuntime, IDocumentManager, IDocumentWidgetOpener],
  optional: [],
  provides: IOpenDocuments,
  activate: (app, runtime, manager, opener) => {
    const documents = new OpenDocuments(
      app.serviceManager.contents,
      { ours: trans.__('in this tab'), theirs: trans.__('in the file') },
      typing(app),
      notifyConflict
    );
    forEachDocument(app, manager, opener, (_, context) =>
      documents.add(context)
    );
    const { serverSettings } = app.serviceManager;
    const reporter = new UnsavedReporter(documents, serverSettings);
    followChanges(app, runtime, documents, reporter);
    return documents;
  }
});

/** Call a function with each document that is open or will be opened. */
export function forEachDocument(
  { shell }: JupyterFrontEnd,
  manager: IDocumentManager,
  opener: IDocumentWidgetOpener,
  follow: (widget: Widget, context: DocumentRegistry.Context) => void
): void {
  const add = (widget: Widget) => {
    const context = manager.contextForWidget(widget);
    if (context) {
      follow(widget, context);
    }
  };
  for (const widget of shell.widgets('main')) {
    add(widget);
  }
  opener.opened.connect((_, widget) => add(widget));
}

/** Find where the person types, in notebooks of JupyterLab and Notebook. */
function typing({ shell }: JupyterFrontEnd): ITyping {
  const currentNotebook = () =>
    (shell.currentWidget as Partial<NotebookPanel> | null)?.content;
  return {
    cell: () => {
      const notebook = currentNotebook();
      return notebook?.mode === 'edit'
        ? (notebook.activeCell?.model.sharedModel.getId() ?? null)
        : null;
    },
    leave: () => {
      const notebook = currentNotebook();
      if (notebook) {
        // A focused notebook in command mode would take letters as shortcuts.
        notebook.mode = 'command';
        (document.activeElement as HTMLElement | null)?.blur();
      }
      const message = trans.__(
        'The cell you were editing was deleted in the file.'
      );
      Notification.info(message, TOAST);
    }
  };
}

/** Merge whenever a file may have changed. */
function followChanges(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  documents: OpenDocuments,
  reporter: UnsavedReporter
): void {
  app.serviceManager.events.stream.connect((_, event) => {
    void onServerEvent(event, documents, reporter);
  });
  runtime.arrived.connect((_, message) => {
    documents.agents.observe(message);
    if (!isAction(message.event)) {
      void documents.sync();
    }
  });
  app.shell.currentChanged?.connect(() => void documents.sync());
  window.addEventListener('focus', () => void documents.sync());
}

async function onServerEvent(
  event: Event.Emission,
  documents: OpenDocuments,
  reporter: UnsavedReporter
): Promise<void> {
  const action = text(event, 'action');
  if (event.schema_id === CONTENTS_EVENT && action === 'save') {
    await documents.sync(text(event, 'path').replace(/^\//, ''));
  } else if (event.schema_id === DOCUMENTS_EVENT && action === 'save') {
    // An agent that is about to use files waits for the unsaved text.
    await documents.saveUnsaved();
    await reporter.report(Number(event.request));
  } else if (event.schema_id === DOCUMENTS_EVENT && action === 'edit') {
    documents.agents.beginSaving(text(event, 'agent'));
  } else if (event.schema_id === DOCUMENTS_EVENT && action === 'changed') {
    documents.agents.requestEnded();
    await documents.sync();
  }
}

function notifyConflict({ path }: OpenDocument, count: number): void {
  Notification.warning(
    // JupyterLab shows at most 140 characters.
    trans._n(
      '%2 conflicts with its file in %1 place. The tab has both versions.',
      '%2 conflicts with its file in %1 places. The tab has both versions.',
      count,
      PathExt.basename(path)
    ),
    TOAST
  );
}
