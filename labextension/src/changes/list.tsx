import type { JupyterFrontEnd } from '@jupyterlab/application';
import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { CommandIDs } from '../ids.js';
import { below } from '../log/summary.js';
import { trans } from '../translation.js';
import { FileSize, kindLabel, RunsWhen } from './file.js';
import type { ChangesModel } from './model.js';

interface IFilesProps {
  model: ChangesModel;
  commands: JupyterFrontEnd['commands'];
}

/** Section of the panel with the changed files, which are compared only while it is open. */
export function ChangesList(
  props: IFilesProps & {
    /** Whether the panel is visible. */
    isShown: boolean;
  }
) {
  const { model, commands, isShown } = props;
  const [isOpen, setOpen] = React.useState(false);
  React.useEffect(() => {
    model.isShown = isOpen && isShown;
    return () => {
      model.isShown = false;
    };
  }, [model, isOpen, isShown]);
  return (
    <details
      className="oh-ChangesList"
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{trans.__('Changes in this session')}</summary>
      {isOpen && (
        <UseSignal signal={model.changed}>
          {() => <Files model={model} commands={commands} />}
        </UseSignal>
      )}
    </details>
  );
}

function Files({ model, commands }: IFilesProps) {
  const { changes, error } = model;
  if (error) {
    return (
      <p className="oh-Note" role="alert">
        {error}
      </p>
    );
  }
  if (!changes || changes.files.length === 0) {
    return (
      <p className="oh-Note" role="status">
        {changes
          ? trans.__('No file has changed since this session began.')
          : trans.__('Comparing files…')}
      </p>
    );
  }
  return (
    <ul aria-label={trans.__('Changed files')}>
      {changes.files.map(file => (
        <li key={file.path}>
          <button
            title={trans.__('Show what changed in %1', file.path)}
            onClick={() =>
              void commands.execute(CommandIDs.showChanges, { path: file.path })
            }
          >
            <span className="oh-Change-name">
              {below(file.path, changes.workspace)}
            </span>
            <RunsWhen
              name={below(file.path, changes.workspace)}
              when={file.runs_when}
            />
            <span className={`oh-Change-kind oh-mod-${file.kind}`}>
              {kindLabel(file.kind)}
            </span>
            <FileSize file={file} />
          </button>
        </li>
      ))}
    </ul>
  );
}
