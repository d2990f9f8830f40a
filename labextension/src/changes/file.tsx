import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { PageConfig } from '@jupyterlab/coreutils';
import { formatFileSize } from '@jupyterlab/filebrowser';
import * as React from 'react';

import type { IFileChange } from '../control/operations.js';
import { reasonOf } from '../events/errors.js';
import { below } from '../log/summary.js';
import { TOAST } from '../notify.js';
import { trans } from '../translation.js';
import {
  contentsPath,
  type CellPart,
  type ChangeKind,
  type Contents,
  type IComparison
} from './changes.js';
import { runsWhenLabel, runsWhenTitle } from './runs.js';
import { DiffView, type DiffLayout } from './diff.js';
import type { ChangesModel } from './model.js';

/** Jupyter's root directory. */
const ROOT = PageConfig.getOption('serverRoot');

/** File that a person has asked for; a new object each time. */
export interface IShownFile {
  readonly path: string;
}

/** Properties shared by all files. */
export interface IFilesProps {
  shown: IShownFile | null;
  model: ChangesModel;
  commands: JupyterFrontEnd['commands'];
  languages: IEditorLanguageRegistry | null;
  layout: DiffLayout;
}

interface IFileProps extends IFilesProps {
  file: IFileChange;
  name: string;
  /** Whether it is initially open. */
  isOpen: boolean;
}

/** File with its buttons: a line that opens. */
export function FileItem(props: IFileProps) {
  const { model, file, name } = props;
  const workspace = model.changes?.workspace ?? '';
  const [isOpen, setOpen] = React.useState(props.isOpen);
  const bodyId = `oh-change-${file.path}`;
  const section = React.useRef<HTMLElement>(null);
  const shown = props.shown?.path === file.path ? props.shown : null;
  React.useEffect(() => {
    if (shown) {
      setOpen(true);
      section.current?.scrollIntoView({ block: 'start' });
    }
  }, [shown]);
  const step = (redo: boolean) => {
    stepOrAsk(props, redo).catch((error: unknown) =>
      Notification.error(reasonOf(error), TOAST)
    );
  };
  return (
    <section
      ref={section}
      className="oh-Change"
      role="listitem"
      aria-label={name}
    >
      <header className="oh-Change-header">
        <button
          className="oh-Change-title"
          aria-expanded={isOpen}
          aria-controls={bodyId}
          onClick={() => setOpen(!isOpen)}
        >
          <span className={`oh-Change-kind oh-mod-${file.kind}`}>
            {kindLabel(file.kind)}
          </span>
          <span className="oh-Change-name">{name}</span>
          {file.moved_from && (
            <span className="oh-Badge oh-mod-environment">
              {trans.__('from %1', below(file.moved_from, workspace))}
            </span>
          )}
          <RunsWhen name={name} when={file.runs_when} />
          {file.by_others && (
            <span className="oh-Badge oh-mod-environment">
              {trans.__('also by others')}
            </span>
          )}
        </button>
        <FileSize file={file} />
        {file.kind !== 'deleted' && (
          <button onClick={() => open(props)}>{trans.__('Open')}</button>
        )}
        <button
          disabled={!file.undoable}
          title={trans.__(
            'Undo the last edit of this file, or the changes that commands made'
          )}
          onClick={() => step(false)}
        >
          {trans.__('Undo')}
        </button>
        <button
          disabled={!file.redoable}
          title={trans.__('Redo the change that was undone last')}
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

/** Undo or redo; overwrite the changes of others only if the person agrees. */
async function stepOrAsk(props: IFileProps, redo: boolean): Promise<void> {
  const { model, file, name } = props;
  if (!(await model.step(file, redo))) {
    return;
  }
  const label = redo ? trans.__('Redo Anyway') : trans.__('Undo Anyway');
  const { button } = await showDialog({
    title: trans.__('Others changed %1 since', name),
    body: trans.__(
      'They changed the same lines, so the file was left unchanged. Continuing discards their changes.'
    ),
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label })]
  });
  if (button.accept) {
    await model.step(file, redo, true);
  }
}

function open({ model, commands, file }: IFileProps): void {
  const path = contentsPath(
    file.path,
    ROOT,
    model.changes?.workspace ?? '',
    model.events?.sessionContext.path ?? ''
  );
  if (path === null) {
    Notification.warning(
      trans.__('%1 is outside of the folders that Jupyter shows.', file.path),
      TOAST
    );
  } else {
    void commands.execute('docmanager:open', { path });
  }
}

function Body({ model, languages, layout, file }: IFileProps) {
  const load = React.useCallback(
    () => model.contents(file),
    [model, model.version, file.path]
  );
  return <Comparisons load={load} languages={languages} layout={layout} />;
}

/** Both versions of a file, or of the cells of a notebook, once they are loaded. */
export function Comparisons(props: {
  load: () => Promise<Contents>;
  languages: IEditorLanguageRegistry | null;
  layout: DiffLayout;
}) {
  const { load, languages, layout } = props;
  const [contents, setContents] = React.useState<Contents | null>(null);
  const [failure, setFailure] = React.useState('');
  React.useEffect(() => {
    let isWanted = true;
    load().then(
      loaded => {
        if (isWanted) {
          setContents(loaded);
          setFailure('');
        }
      },
      (error: unknown) => isWanted && setFailure(String(error))
    );
    return () => {
      isWanted = false;
    };
  }, [load]);
  if (failure || contents === null || typeof contents === 'string') {
    const words = failure || reasonLabel(contents as string | null);
    return <p className="oh-Note">{words}</p>;
  }
  return (
    <>
      {contents.map(each => (
        <React.Fragment key={each.key}>
          {each.cell !== null && <CellHeading cell={each} />}
          <DiffView comparison={each} layout={layout} languages={languages} />
        </React.Fragment>
      ))}
    </>
  );
}

function CellHeading(props: { cell: IComparison }) {
  const { cell } = props;
  return (
    <h4 className="oh-Change-cell">
      {partLabel(cell)}
      <span className={`oh-Change-kind oh-mod-${cell.kind}`}>
        {kindLabel(cell.kind)}
      </span>
    </h4>
  );
}

function partLabel({ cell, part }: IComparison): string {
  const labels: Record<CellPart, string> = {
    source: trans.__('Cell %1', cell),
    outputs: trans.__('Outputs of cell %1', cell),
    metadata: trans.__('Metadata of cell %1', cell)
  };
  return labels[part];
}

function reasonLabel(reason: string | null): string {
  const labels: Record<string, string> = {
    binary: trans.__('Binary files are not compared.'),
    forgotten: trans.__('The history no longer has the previous version.'),
    too_long: trans.__('This file is too long to compare here.')
  };
  return labels[reason ?? ''] ?? trans.__('Comparing…');
}

export function kindLabel(kind: ChangeKind): string {
  const labels: Record<ChangeKind, string> = {
    created: trans.__('new'),
    changed: trans.__('changed'),
    deleted: trans.__('deleted'),
    moved: trans.__('moved')
  };
  return labels[kind];
}

/** Label of a file that a program of the person runs; nothing for others. */
export function RunsWhen(props: { name: string; when: string | null }) {
  const { name, when } = props;
  return when ? (
    <span className="oh-Badge oh-RunsWhen" title={runsWhenTitle(name, when)}>
      {runsWhenLabel(when)}
    </span>
  ) : null;
}

/** Numbers of changed lines, or the size of a binary file. */
export function FileSize({ file }: { file: IFileChange }) {
  return file.binary_size === null ? (
    <LineCounts {...file} />
  ) : (
    <span className="oh-LineCounts">
      {formatFileSize(file.binary_size, 1, 1024)}
    </span>
  );
}

/** Numbers of added and removed lines. */
export function LineCounts(props: { added: number; removed: number }) {
  const { added, removed } = props;
  return (
    <span
      className="oh-LineCounts"
      title={trans.__('%1 lines added, %2 removed', added, removed)}
    >
      <span className="oh-mod-added">+{added}</span>{' '}
      <span className="oh-mod-removed">−{removed}</span>
    </span>
  );
}
