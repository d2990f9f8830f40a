import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { PageConfig } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { formatFileSize } from '@jupyterlab/filebrowser';
import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import {
  contentsPath,
  relativeTo,
  type ChangeKind,
  type Contents,
  type IComparison,
  type IFileChange
} from './changes.js';
import { LineCounts } from './counts.js';
import { DiffView, type DiffLayout } from './diff.js';
import type { ChangesModel } from './model.js';

/** Milliseconds; without them a notification is only counted in the status bar. */
const TOAST = { autoClose: 6000 };

/** The directory that Jupyter shows. */
const ROOT = PageConfig.getOption('serverRoot');

interface IFileProps {
  model: ChangesModel;
  commands: JupyterFrontEnd['commands'];
  languages: IEditorLanguageRegistry | null;
  layout: DiffLayout;
  file: IFileChange;
  /** The path as people name it. */
  name: string;
  /** Whether it is open at first. */
  isOpen: boolean;
  trans: TranslationBundle;
}

/** One file: a line that opens, and what can be done with it. */
export function FileItem(props: IFileProps) {
  const { model, file, name, trans } = props;
  const workspace = model.changes?.workspace ?? '';
  const [isOpen, setOpen] = React.useState(props.isOpen);
  const bodyId = `oh-change-${file.path}`;
  const step = (redo: boolean) => {
    stepOrAsk(props, redo).catch((error: unknown) => {
      const reason = reasonOf(error);
      Notification.error(reason, TOAST);
    });
  };
  return (
    <section className="oh-Change" role="listitem" aria-label={name}>
      <header className="oh-Change-header">
        <button
          className="oh-Change-title"
          aria-expanded={isOpen}
          aria-controls={bodyId}
          onClick={() => setOpen(!isOpen)}
        >
          <span className={`oh-Change-kind oh-mod-${file.kind}`}>
            {kindLabel(file.kind, trans)}
          </span>
          <span className="oh-Change-name">{name}</span>
          {file.movedFrom && (
            <span className="oh-Badge oh-mod-environment">
              {trans.__('from %1', relativeTo(workspace, file.movedFrom))}
            </span>
          )}
          {file.byOthers && (
            <span className="oh-Badge oh-mod-environment">
              {trans.__('by others, too')}
            </span>
          )}
        </button>
        {file.binarySize === null ? (
          <LineCounts {...file} trans={trans} />
        ) : (
          <span className="oh-LineCounts">
            {formatFileSize(file.binarySize, 1, 1024)}
          </span>
        )}
        {file.kind !== 'deleted' && (
          <button onClick={() => open(props)}>{trans.__('Open')}</button>
        )}
        <button
          disabled={!file.undoable}
          title={trans.__(
            'Take back the last edit of this file, or what commands made of it'
          )}
          onClick={() => step(false)}
        >
          {trans.__('Undo')}
        </button>
        <button
          disabled={!file.redoable}
          title={trans.__('Make the change again that was undone last')}
          onClick={() => step(true)}
        >
          {trans.__('Redo')}
        </button>
      </header>
      {isOpen && (
        <div className="oh-Change-body" id={bodyId}>
          <Body {...props} />
        </div>
      )}
    </section>
  );
}

/** Undo or redo; what others changed since goes only if the person wants that. */
async function stepOrAsk(props: IFileProps, redo: boolean): Promise<void> {
  const { model, file, name, trans } = props;
  if (!(await model.step(file, redo))) {
    return;
  }
  const label = redo
    ? trans.__('Redo All the Same')
    : trans.__('Undo All the Same');
  const { button } = await showDialog({
    title: trans.__('%1 was changed by others since', name),
    body: trans.__(
      'They changed what is to be changed back, so it stays as it is. Their changes would be lost.'
    ),
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label })]
  });
  if (button.accept) {
    await model.step(file, redo, true);
  }
}

function open({ model, commands, file, trans }: IFileProps): void {
  const path = contentsPath(
    file.path,
    ROOT,
    model.changes?.workspace ?? '',
    model.events?.sessionContext.path ?? ''
  );
  if (path === null) {
    Notification.warning(
      trans.__('%1 is in no folder that Jupyter shows.', file.path),
      TOAST
    );
  } else {
    void commands.execute('docmanager:open', { path });
  }
}

function Body({ model, languages, layout, file, trans }: IFileProps) {
  const [contents, setContents] = React.useState<Contents | null>(null);
  const [failure, setFailure] = React.useState('');
  React.useEffect(() => {
    let isWanted = true;
    model.contents(file).then(
      found => {
        if (isWanted) {
          setContents(found);
          setFailure('');
        }
      },
      (error: unknown) => isWanted && setFailure(String(error))
    );
    return () => {
      isWanted = false;
    };
  }, [model, model.version, file.path]);
  if (failure || contents === null || typeof contents === 'string') {
    const words = failure || reasonLabel(contents as string | null, trans);
    return <p className="oh-Note">{words}</p>;
  }
  return (
    <>
      {contents.map(each => (
        <React.Fragment key={each.key}>
          {each.cell !== null && <CellHeading cell={each} trans={trans} />}
          <DiffView
            comparison={each}
            layout={layout}
            languages={languages}
            trans={trans}
          />
        </React.Fragment>
      ))}
    </>
  );
}

function CellHeading(props: { cell: IComparison; trans: TranslationBundle }) {
  const { cell, trans } = props;
  return (
    <h4 className="oh-Change-cell">
      {trans.__('Cell %1', cell.cell)}
      <span className={`oh-Change-kind oh-mod-${cell.kind}`}>
        {kindLabel(cell.kind, trans)}
      </span>
    </h4>
  );
}

function reasonLabel(reason: string | null, trans: TranslationBundle): string {
  switch (reason) {
    case null:
      return trans.__('Comparing…');
    case 'binary':
      return trans.__('This is no text, so it is not compared.');
    case 'forgotten':
      return trans.__('The history no longer knows what it was.');
    default:
      return trans.__('This is too long to be compared here.');
  }
}

function kindLabel(kind: ChangeKind, trans: TranslationBundle): string {
  const labels: Record<ChangeKind, string> = {
    created: trans.__('new'),
    changed: trans.__('changed'),
    deleted: trans.__('deleted'),
    moved: trans.__('moved')
  };
  return labels[kind];
}
