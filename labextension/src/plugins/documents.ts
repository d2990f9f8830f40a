import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import {
  IDocumentManager,
  IDocumentWidgetOpener
} from '@jupyterlab/docmanager';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Event } from '@jupyterlab/services';
import {
  ITranslator,
  nullTranslator,
  type TranslationBundle
} from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';

import type { OpenDocument } from '../documents/context.js';
import type { ITyping } from '../documents/document.js';
import { OpenDocuments } from '../documents/documents.js';
import { UnsavedReporter } from '../documents/reporter.js';
import { isAction, text } from '../events/wire.js';
import { IOhRuntime } from '../tokens.js';

/** Server events: a file was saved over the server, and what ours says of documents. */
const CONTENTS_EVENT =
  'https://events.jupyter.org/jupyter_server/contents_service/v1';
const DOCUMENTS_EVENT = 'urn:oh-jupyter:documents:v1';

/** Milliseconds; without them a notification is only counted in the status bar. */
const TOAST = { autoClose: 30_000 };

/** Shows in open tabs what agents do to their files, and gives agents what is in the tabs. */
export const documentsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:documents',
  description:
    'Merges what an agent changes in a file into the tab where it is open.',
  autoStart: true,
  requires: [IOhRuntime, IDocumentManager, IDocumentWidgetOpener],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    manager: IDocumentManager,
    opener: IDocumentWidgetOpener,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    const documents = new OpenDocuments(
      app.serviceManager.contents,
      { ours: trans.__('in this tab'), theirs: trans.__('in the file') },
      typing(app, trans),
      (document, count) => tellConflict(document, count, trans)
    );
    const follow = (widget: Widget) => {
      const context = manager.contextForWidget(widget);
      if (context) {
        documents.add(context);
      }
    };
    for (const widget of app.shell.widgets('main')) {
      follow(widget);
    }
    opener.opened.connect((_, widget) => follow(widget));
    const reporter = new UnsavedReporter(
      documents,
      app.serviceManager.serverSettings
    );
    followChanges(app, runtime, documents, reporter);
  }
};

/** Where the person types, in Lab's or in Notebook's notebooks. */
function typing({ shell }: JupyterFrontEnd, trans: TranslationBundle): ITyping {
  const inFront = () =>
    (shell.currentWidget as Partial<NotebookPanel> | null)?.content;
  return {
    cell: () => {
      const notebook = inFront();
      return notebook?.mode === 'edit'
        ? (notebook.activeCell?.model.sharedModel.getId() ?? null)
        : null;
    },
    leave: () => {
      const notebook = inFront();
      if (notebook) {
        // In command mode a notebook with the focus takes letters as shortcuts.
        notebook.mode = 'command';
        (document.activeElement as HTMLElement | null)?.blur();
      }
      Notification.info(
        trans.__('The cell that you were in was deleted in the file.'),
        TOAST
      );
    }
  };
}

/** Merge whenever somebody may have changed a file. */
function followChanges(
  app: JupyterFrontEnd,
  runtime: IOhRuntime,
  documents: OpenDocuments,
  reporter: UnsavedReporter
): void {
  app.serviceManager.events.stream.connect((_, event) => {
    void onServerEvent(event, documents, reporter);
  });
  runtime.arrived.connect((_, { event }) => {
    if (!isAction(event)) {
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
    // An agent is about to read or change files, and waits for what is typed here.
    await documents.saveUnsaved();
    await reporter.report(Number(event.request));
  } else if (event.schema_id === DOCUMENTS_EVENT && action === 'changed') {
    await documents.sync();
  }
}

function tellConflict(
  { path }: OpenDocument,
  count: number,
  trans: TranslationBundle
): void {
  const name = PathExt.basename(path);
  Notification.warning(
    trans._n(
      '%2 was changed here and in its file in the same place. Both versions are in the tab.',
      '%2 was changed here and in its file in %1 places. Both versions of each are in the tab.',
      count,
      name
    ),
    TOAST
  );
}
