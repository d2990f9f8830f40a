import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { KernelPanel } from '../control/panel.js';
import { CommandIDs } from '../ids.js';
import { Notice } from '../log/notice.js';
import { relativeTo, type IFileChange } from './changes.js';
import { LineCounts } from './counts.js';
import type { DiffLayout } from './diff.js';
import { FileItem } from './file.js';
import type { ChangesModel } from './model.js';

/** As many files are opened by themselves. */
const MAX_OPENED = 5;

/** The tab that compares what files are with what they were when the session began. */
export class ChangesPanel extends KernelPanel<ChangesModel> {
  /**
   * @param model - What changed.
   * @param commands - With which files are opened and turns undone.
   * @param languages - The colours of texts, where there are any.
   * @param trans - The language that it speaks.
   */
  constructor(
    model: ChangesModel,
    commands: JupyterFrontEnd['commands'],
    languages: IEditorLanguageRegistry | null,
    trans: TranslationBundle
  ) {
    super(model);
    this.addClass('oh-Changes');
    this._commands = commands;
    this._languages = languages;
    this._trans = trans;
  }

  /** Called when a person chose how differences are shown. */
  onLayout: (layout: DiffLayout) => void = () => undefined;

  get diffLayout(): DiffLayout {
    return this._diffLayout;
  }
  set diffLayout(layout: DiffLayout) {
    this._diffLayout = layout;
    this.update();
  }

  protected override view(): React.ReactElement {
    return (
      <Changes
        model={this.model}
        commands={this._commands}
        languages={this._languages}
        layout={this._diffLayout}
        onLayout={layout => {
          this.diffLayout = layout;
          this.onLayout(layout);
        }}
        trans={this._trans}
      />
    );
  }

  private readonly _commands: JupyterFrontEnd['commands'];
  private readonly _languages: IEditorLanguageRegistry | null;
  private readonly _trans: TranslationBundle;
  private _diffLayout: DiffLayout = 'split';
}

interface IChangesProps {
  model: ChangesModel;
  commands: JupyterFrontEnd['commands'];
  languages: IEditorLanguageRegistry | null;
  layout: DiffLayout;
  onLayout: (layout: DiffLayout) => void;
  trans: TranslationBundle;
}

function Changes(props: IChangesProps) {
  const { model, commands, languages, layout, trans } = props;
  const { changes, events } = model;
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty trans={trans} />;
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
          {trans.__('What commands changed is not known: %1', changes.problem)}
        </p>
      )}
      <div className="oh-Changes-files" role="list">
        {files.map((file, index) => (
          <FileItem
            key={file.path}
            model={model}
            commands={commands}
            languages={languages}
            layout={layout}
            file={file}
            name={relativeTo(changes?.workspace ?? '', file.path)}
            isOpen={index < MAX_OPENED}
            trans={trans}
          />
        ))}
        {files.length === 0 && !model.error && (
          <p className="oh-Note" role="status">
            {changes
              ? trans.__('No file has changed since this session began.')
              : trans.__('Looking what has changed…')}
          </p>
        )}
      </div>
    </>
  );
}

function Header(props: IChangesProps & { files: readonly IFileChange[] }) {
  const { model, commands, layout, onLayout, files, trans } = props;
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
        <LineCounts added={added} removed={removed} trans={trans} />
      </span>
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
      <button onClick={() => void model.refresh()}>
        {trans.__('Refresh')}
      </button>
      <button onClick={() => void commands.execute(CommandIDs.rewind)}>
        {trans.__('Undo everything since…')}
      </button>
    </header>
  );
}
