import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';

import type { IFileChange } from '../control/operations.js';
import { KernelPanel } from '../control/kernelpanel.js';
import { CommandIDs } from '../ids.js';
import { Notice } from '../log/notice.js';
import { below } from '../log/summary.js';
import { trans } from '../translation.js';
import type { DiffLayout } from './diff.js';
import {
  FileItem,
  LineCounts,
  type IFilesProps,
  type IShownFile
} from './file.js';
import type { ChangesModel } from './model.js';

/** How many files are initially open. */
const MAX_OPENED = 5;

/** Width below which texts are not compared side by side. */
const NARROW_PX = 560;

/** Tab that compares files with their state at the start of the session. */
export class ChangesPanel extends KernelPanel<ChangesModel> {
  constructor(
    model: ChangesModel,
    private readonly _commands: JupyterFrontEnd['commands'],
    private readonly _languages: IEditorLanguageRegistry | null
  ) {
    super(model);
    this.addClass('oh-Changes');
  }

  /** Called when the person selects a layout. */
  onLayout: (layout: DiffLayout) => void = () => undefined;

  get diffLayout(): DiffLayout {
    return this._diffLayout;
  }
  set diffLayout(layout: DiffLayout) {
    this._diffLayout = layout;
    this.update();
  }

  /** Open one file and scroll to it. */
  showFile(path: string): void {
    this._shown = { path };
    this.update();
  }

  protected override onResize(message: Widget.ResizeMessage): void {
    super.onResize(message);
    const isNarrow = message.width > 0 && message.width < NARROW_PX;
    if (isNarrow !== this._isNarrow) {
      this._isNarrow = isNarrow;
      this.update();
    }
  }

  protected override view(): React.ReactElement {
    return (
      <Changes
        model={this.model}
        commands={this._commands}
        languages={this._languages}
        layout={this._isNarrow ? 'inline' : this._diffLayout}
        isNarrow={this._isNarrow}
        shown={this._shown}
        onLayout={layout => {
          this.diffLayout = layout;
          this.onLayout(layout);
        }}
      />
    );
  }

  private _diffLayout: DiffLayout = 'split';
  private _isNarrow = false;
  private _shown: IShownFile | null = null;
}

interface IChangesProps extends IFilesProps {
  /** Whether two columns have no space. */
  isNarrow: boolean;
  onLayout: (layout: DiffLayout) => void;
}

function Changes(props: IChangesProps) {
  const { model } = props;
  const { changes, events } = model;
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty />;
  }
  const files = changes?.files ?? [];
  return (
    <>
      <Header {...props} files={files} />
      {model.error && (
        <p className="oh-Note" role="alert">
          {model.error}
        </p>
      )}
      {changes?.problem && (
        <p className="oh-Note">
          {trans.__('Changes by commands are unknown: %1', changes.problem)}
        </p>
      )}
      <div className="oh-Changes-files" role="list">
        {files.map((file, index) => (
          <FileItem
            {...props}
            key={file.path}
            file={file}
            name={below(file.path, changes?.workspace ?? '')}
            isOpen={index < MAX_OPENED}
          />
        ))}
        {files.length === 0 && !model.error && (
          <p className="oh-Note" role="status">
            {changes
              ? trans.__('No file has changed since this session began.')
              : trans.__('Comparing files…')}
          </p>
        )}
      </div>
    </>
  );
}

function Header(props: IChangesProps & { files: readonly IFileChange[] }) {
  const { model, commands, layout, onLayout, isNarrow, files } = props;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  const layouts: readonly [DiffLayout, string][] = [
    ['split', trans.__('Side by side')],
    ['inline', trans.__('Inline')]
  ];
  return (
    <header className="oh-Changes-header">
      <h2>{trans.__('Changes in %1', model.events?.name ?? '')}</h2>
      <span className="oh-Changes-total">
        {trans._n('%1 file', '%1 files', files.length)}{' '}
        <LineCounts added={added} removed={removed} />
      </span>
      {!isNarrow && (
        <span
          className="oh-Changes-layouts"
          role="group"
          aria-label={trans.__('Layout')}
        >
          {layouts.map(([each, label]) => (
            <button
              key={each}
              aria-pressed={layout === each}
              onClick={() => onLayout(each)}
            >
              {label}
            </button>
          ))}
        </span>
      )}
      <button onClick={() => void model.refresh()}>
        {trans.__('Refresh')}
      </button>
      <button onClick={() => void commands.execute(CommandIDs.rewind)}>
        {trans.__('Undo everything since…')}
      </button>
    </header>
  );
}
