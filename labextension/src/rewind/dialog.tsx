import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import {
  proposed,
  type ICheckpoint,
  type ICheckpoints,
  type IRewindPlan
} from './checkpoints.js';

/** What a person has chosen to go back to. */
export interface IChoice {
  readonly id: number;
  readonly everything: boolean;
}

type Preview = (choice: IChoice) => Promise<IRewindPlan>;

/** The body of a dialog: which turn, and what undoing it and all later ones would do. */
export class RewindBody extends ReactWidget {
  /**
   * @param checkpoints - What there is to choose from; not empty.
   * @param preview - Asks what a choice would do.
   * @param trans - The language that it speaks.
   */
  constructor(
    checkpoints: ICheckpoints,
    preview: Preview,
    trans: TranslationBundle
  ) {
    super();
    this._checkpoints = checkpoints;
    this._preview = preview;
    this._trans = trans;
    this._choice = {
      id: proposed(checkpoints.entries)?.id ?? -1,
      everything: false
    };
  }

  /** What was chosen, for the dialog that shows this. */
  getValue(): IChoice {
    return this._choice;
  }

  protected override render(): React.ReactElement {
    return (
      <RewindForm
        checkpoints={this._checkpoints}
        first={this._choice}
        preview={this._preview}
        onChoose={choice => {
          this._choice = choice;
        }}
        trans={this._trans}
      />
    );
  }

  private readonly _checkpoints: ICheckpoints;
  private readonly _preview: Preview;
  private readonly _trans: TranslationBundle;
  private _choice: IChoice;
}

function RewindForm(props: {
  checkpoints: ICheckpoints;
  first: IChoice;
  preview: Preview;
  onChoose: (choice: IChoice) => void;
  trans: TranslationBundle;
}) {
  const { checkpoints, preview, onChoose, trans } = props;
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
        {checkpoints.entries.map(entry => (
          <li key={entry.id}>
            <label>
              <input
                type="radio"
                name="oh-checkpoint"
                checked={entry.id === choice.id}
                onChange={() => choose({ id: entry.id })}
              />
              <span>{entry.label || trans.__('(no name)')}</span>
              <span className="oh-RewindDialog-about">
                {about(entry, trans)}
              </span>
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
        {trans.__('Undo what I and others changed since, too')}
      </label>
      <Plan choice={choice} preview={preview} trans={trans} />
    </div>
  );
}

function about(entry: ICheckpoint, trans: TranslationBundle): string {
  const when = new Date(1000 * entry.time).toLocaleString();
  const kinds: Record<string, string> = {
    turn: entry.who,
    mark: trans.__('a mark'),
    rewind: trans.__('an undo')
  };
  return `${kinds[entry.kind] ?? entry.kind}, ${when}`;
}

/** What the choice would do, asked anew for each. */
function Plan(props: {
  choice: IChoice;
  preview: Preview;
  trans: TranslationBundle;
}) {
  const { choice, preview, trans } = props;
  const [plan, setPlan] = React.useState<IRewindPlan | string | null>(null);
  React.useEffect(() => {
    let isWanted = true;
    setPlan(null);
    preview(choice).then(
      found => isWanted && setPlan(found),
      error => isWanted && setPlan(String(error))
    );
    return () => {
      isWanted = false;
    };
  }, [choice, preview]);
  if (plan === null) {
    return <p role="status">{trans.__('Looking what would be undone…')}</p>;
  }
  if (typeof plan === 'string') {
    return <p role="alert">{plan}</p>;
  }
  if (plan.changes.length === 0 && plan.kept.length === 0) {
    return (
      <p role="status">
        {trans.__('No file was changed since then by an agent.')}
      </p>
    );
  }
  return (
    <ul
      className="oh-RewindDialog-plan"
      aria-label={trans.__('What would be undone')}
    >
      {plan.changes.map(({ path, kind }) => (
        <li key={path}>
          <span className="oh-RewindDialog-kind">{kindLabel(kind, trans)}</span>
          <span>{path}</span>
        </li>
      ))}
      {plan.kept.map(([path, reason]) => (
        <li key={path} title={reason}>
          <span className="oh-RewindDialog-kind">{trans.__('stays')}</span>
          <span>{trans.__('%1 (%2)', path, reason)}</span>
        </li>
      ))}
    </ul>
  );
}

function kindLabel(kind: string, trans: TranslationBundle): string {
  const labels: Record<string, string> = {
    create: trans.__('comes back'),
    restore: trans.__('restored'),
    merge: trans.__('merged'),
    delete: trans.__('deleted'),
    permissions: trans.__('permissions')
  };
  return labels[kind] ?? kind;
}
