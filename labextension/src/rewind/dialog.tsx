import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { Contents } from '../changes/changes.js';
import { Comparisons } from '../changes/file.js';
import type {
  ICheckpoint,
  ICheckpointList,
  IPathChange,
  IRewindPlan,
  IVariableChange
} from '../control/operations.js';
import { trans } from '../translation.js';
import { proposed } from './checkpoints.js';

export interface IChoice {
  readonly id: number;
  readonly everything: boolean;
}

/** How the dialog learns what a choice would undo. */
export interface IPreviews {
  plan(choice: IChoice): Promise<IRewindPlan>;
  /** Both versions of a changed file. */
  contents(choice: IChoice, change: IPathChange): Promise<Contents>;
  readonly languages: IEditorLanguageRegistry | null;
}

/** Dialog body: the checkpoints, and a preview of undoing everything since. */
export class RewindBody extends ReactWidget {
  constructor(
    private readonly _checkpoints: ICheckpointList,
    chosen: number | null,
    private readonly _previews: IPreviews
  ) {
    super();
    this._choice = {
      id: chosen ?? proposed(this._checkpoints.checkpoints)?.id ?? -1,
      everything: false
    };
  }

  getValue(): IChoice {
    return this._choice;
  }

  protected override render(): React.ReactElement {
    return (
      <RewindForm
        checkpoints={this._checkpoints}
        first={this._choice}
        previews={this._previews}
        onChoose={choice => {
          this._choice = choice;
        }}
      />
    );
  }

  private _choice: IChoice;
}

function RewindForm(props: {
  checkpoints: ICheckpointList;
  first: IChoice;
  previews: IPreviews;
  onChoose: (choice: IChoice) => void;
}) {
  const { checkpoints, previews, onChoose } = props;
  const [choice, setChoice] = React.useState(props.first);
  const choose = (changed: Partial<IChoice>) => {
    const chosen = { ...choice, ...changed };
    setChoice(chosen);
    onChoose(chosen);
  };
  return (
    <div className="oh-RewindDialog">
      {checkpoints.problem && (
        <p>{trans.__('No new checkpoints: %1', checkpoints.problem)}</p>
      )}
      <ul className="oh-RewindDialog-list">
        {checkpoints.checkpoints.map(entry => (
          <li key={entry.id}>
            <label>
              <input
                type="radio"
                name="oh-checkpoint"
                checked={entry.id === choice.id}
                onChange={() => choose({ id: entry.id })}
              />
              <span>{entry.label || trans.__('(unnamed)')}</span>
              <span className="oh-RewindDialog-about">{about(entry)}</span>
            </label>
          </li>
        ))}
      </ul>
      <label className="oh-RewindDialog-everything">
        <input
          type="checkbox"
          checked={choice.everything}
          onChange={({ target }) => choose({ everything: target.checked })}
        />
        {trans.__('Also undo later changes by me and others')}
      </label>
      <Plan choice={choice} previews={previews} />
    </div>
  );
}

function about(entry: ICheckpoint): string {
  const when = new Date(1000 * entry.time).toLocaleString();
  const kinds: Record<string, string> = {
    turn: entry.who,
    mark: trans.__('checkpoint'),
    rewind: trans.__('undo')
  };
  const { cells } = entry;
  const [files, variables] = [entry.files.length, entry.variables.length];
  const counts = [
    files > 0 && trans._n('%1 file', '%1 files', files),
    cells > 0 && trans._n('%1 cell', '%1 cells', cells),
    variables > 0 && trans._n('%1 variable', '%1 variables', variables)
  ];
  const parts = [kinds[entry.kind] ?? entry.kind, ...counts, when];
  return parts.filter(part => part !== false).join(', ');
}

/** Preview of the current choice. */
function Plan(props: { choice: IChoice; previews: IPreviews }) {
  const { choice, previews } = props;
  const [plan, setPlan] = React.useState<IRewindPlan | string | null>(null);
  React.useEffect(() => {
    let isWanted = true;
    setPlan(null);
    previews.plan(choice).then(
      loaded => isWanted && setPlan(loaded),
      error => isWanted && setPlan(String(error))
    );
    return () => {
      isWanted = false;
    };
  }, [choice, previews]);
  if (plan === null) {
    return <p role="status">{trans.__('Checking what would be undone…')}</p>;
  }
  if (typeof plan === 'string') {
    return <p role="alert">{plan}</p>;
  }
  const unchanged = Object.entries(plan.kept);
  const notes = plan.notes.map(note => <p key={note}>{note}</p>);
  if (
    plan.changes.length === 0 &&
    unchanged.length === 0 &&
    plan.variables.length === 0
  ) {
    return (
      <>
        <p role="status">
          {trans.__(
            'No agent changed files or variables since this checkpoint.'
          )}
        </p>
        {notes}
      </>
    );
  }
  return (
    <>
      <ul
        className="oh-RewindDialog-plan"
        aria-label={trans.__('What would be undone')}
      >
        {plan.changes.map(change => (
          <PathChange
            key={`${choice.id} ${choice.everything} ${change.path}`}
            change={change}
            choice={choice}
            previews={previews}
          />
        ))}
        {unchanged.map(([path, reason]) => (
          <li key={path} title={reason}>
            <span className="oh-RewindDialog-kind">
              {trans.__('unchanged')}
            </span>
            <span>{trans.__('%1 (%2)', path, reason)}</span>
          </li>
        ))}
        {plan.variables.map(variable => (
          <li key={`variable ${variable.name}`} title={variable.reason}>
            <span className="oh-RewindDialog-kind">
              {outcomeLabel(variable.outcome)}
            </span>
            <span>
              <code>{variable.name}</code> {aboutVariable(variable)}
            </span>
          </li>
        ))}
      </ul>
      {notes}
    </>
  );
}

/** Changed path that opens to its lines. */
function PathChange(props: {
  change: IPathChange;
  choice: IChoice;
  previews: IPreviews;
}) {
  const { change, choice, previews } = props;
  const [isOpen, setOpen] = React.useState(false);
  const load = React.useCallback(
    () => previews.contents(choice, change),
    [previews, choice, change]
  );
  const line = (
    <>
      <span className="oh-RewindDialog-kind">{kindLabel(change.kind)}</span>
      <span>{change.path}</span>
    </>
  );
  if (change.kind === 'permissions') {
    return <li>{line}</li>;
  }
  return (
    <li className="oh-mod-opens">
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>{line}</summary>
        {isOpen && (
          <Comparisons
            load={load}
            languages={previews.languages}
            layout="inline"
          />
        )}
      </details>
    </li>
  );
}

function aboutVariable(variable: IVariableChange): string {
  const { type, size, reason } = variable;
  const bytes = size ? trans.__('%1 bytes', size.toLocaleString()) : '';
  return `(${[type, bytes, reason].filter(Boolean).join(', ')})`;
}

function outcomeLabel(outcome: string): string {
  const labels: Record<string, string> = {
    restored: trans.__('restored'),
    rebound: trans.__('new object'),
    removed: trans.__('deleted'),
    unchanged: trans.__('unchanged'),
    yours: trans.__('yours, stays'),
    'not kept': trans.__('not kept')
  };
  return labels[outcome] ?? outcome;
}

function kindLabel(kind: string): string {
  const labels: Record<string, string> = {
    create: trans.__('recreated'),
    restore: trans.__('restored'),
    merge: trans.__('merged'),
    delete: trans.__('deleted'),
    permissions: trans.__('permissions')
  };
  return labels[kind] ?? kind;
}
