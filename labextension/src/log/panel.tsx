import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { Menu, Widget } from '@lumino/widgets';
import * as React from 'react';

import type { IContextItem } from '../agent/context.js';
import type { AgentModel } from '../agent/model.js';
import { origin } from '../cells/cell.js';
import type { ChangesModel } from '../changes/model.js';
import type { IVerdict } from '../events/api.js';
import type { ICard } from '../events/card.js';
import { RuntimeGoneError } from '../events/errors.js';
import { CommandIDs } from '../ids.js';
import type { IActivity, IOhRuntime, IOpenCard } from '../tokens.js';
import { trans } from '../translation.js';
import type { CopyForm } from './buttons.js';
import type { ICardActions } from './card.js';
import { finishedKeys } from './cleared.js';
import { ohIcon } from './icons.js';
import type { IConversationActions } from './rows.js';
import type { LimitsModel } from './limits.js';
import { LogView } from './view.js';

export const PANEL_ID = 'oh-jupyter-log';

/** Sidebar panel: what was asked and done in the current notebook or a fleet, and the prompt box. */
export class LogPanel extends ReactWidget {
  constructor(
    private readonly _runtime: IOhRuntime,
    private readonly _agents: AgentModel,
    private readonly _changes: ChangesModel,
    private readonly _limits: LimitsModel,
    private readonly _commands: JupyterFrontEnd['commands'],
    rendermime: IRenderMimeRegistry | null,
    private readonly _findContext: (
      query: string
    ) => Promise<readonly IContextItem[]>
  ) {
    super();
    this._conversation = {
      rendermime,
      onReview: () => this._review(),
      onUndo: checkpoint => this._run(CommandIDs.rewind, { checkpoint })
    };
    this._agents.changed.connect(this.update, this);
    this.id = PANEL_ID;
    this.addClass('oh-Panel');
    this.title.icon = ohIcon;
    this.title.caption = trans.__('OpenHands');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('OpenHands'));
    this._runtime.fleetsChanged.connect(this.update, this);
    this._runtime.shownChanged.connect(this._onShownChanged, this);
    this._onShownChanged(this._runtime, this._runtime.shown);
  }

  /** Whether to keep the newest card visible. */
  get follow(): boolean {
    return this._follow;
  }
  set follow(follow: boolean) {
    if (follow !== this._follow) {
      this._follow = follow;
      this.update();
    }
  }

  /** Whether every action is shown in one list, without prompts. */
  get isFlat(): boolean {
    return this._isFlat;
  }
  set isFlat(isFlat: boolean) {
    this._isFlat = isFlat;
    this.update();
  }

  /** Whether the filter is shown and applies. */
  get isFiltering(): boolean {
    return this._isFiltering;
  }
  set isFiltering(isFiltering: boolean) {
    this._isFiltering = isFiltering;
    this.update();
  }

  /** Menu of the header. */
  menu: Menu | null = null;

  /** Whether something has ended that is not hidden. */
  get canClear(): boolean {
    return [...this._finished].some(key => !this._cleared.has(key));
  }

  /** Hide what has ended. */
  clearFinished(): void {
    this._cleared = this._finished;
    this.update();
  }

  /** Agent to use before any was asked. */
  set preferred(name: string) {
    this._agents.preferred = name;
    this.update();
  }

  override dispose(): void {
    this._agents.dispose();
    this._changes.dispose();
    this._limits.dispose();
    this.menu?.dispose();
    super.dispose();
  }

  /** Put the cursor into the prompt box when it is there. */
  ask(): void {
    this._wantsFocus = true;
    this.update();
  }

  /** Draw only while visible. */
  override update(): void {
    if (this.isVisible) {
      super.update();
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._agents.isShown = true;
    this._limits.isShown = true;
    this.update();
    this._show();
  }

  protected override render(): React.ReactElement {
    return (
      <LogView
        // A new key resets the filter for another notebook.
        key={this._shownCount}
        events={this._events}
        entries={this._events?.entries ?? []}
        follow={this._follow}
        onFollow={this._setFollow}
        isFlat={this._isFlat}
        isFiltering={this._isFiltering}
        onFilterEnd={this._endFilter}
        onShowCleared={this._showCleared}
        cleared={this._cleared}
        onMenu={this._openMenu}
        fleets={this._runtime.fleets}
        chosen={this._isFleet ? (this._events?.name ?? '') : ''}
        onChoose={this._choose}
        actions={this._actions()}
        conversation={this._conversation}
        agents={this._isFleet ? null : this._agents}
        changes={this._isFleet ? null : this._changes}
        limits={this._isFleet ? null : this._limits}
        isShown={this.isVisible}
        commands={this._commands}
        takeFocus={this._takeFocus}
        onAsk={this._ask}
        findContext={this._findContext}
      />
    );
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._agents.isShown = false;
    this._limits.isShown = false;
    // Draw once more to stop reading progress.
    super.update();
    if (this._events) {
      this._events.isShown = isShownOrReloading(this);
    }
  }

  private _onShownChanged(_: IOhRuntime, events: IActivity | null): void {
    this._events?.changed.disconnect(this._onChanged, this);
    if (this._events) {
      this._events.isShown = false;
    }
    this._events = events;
    this._shownCount += 1;
    this._cleared = NOTHING;
    // A filter would take the focus from the other notebook.
    this._isFiltering = false;
    events?.changed.connect(this._onChanged, this);
    this._onChanged();
    if (this.isVisible) {
      this._show();
    }
  }

  private _show(): void {
    if (this._events) {
      this._events.isShown = true;
      void this._events.refresh();
    }
  }

  /** Return the same object until something changes, so that cards are not drawn again. */
  private _actions(): ICardActions {
    const canAdd =
      !this._isFleet && this._commands.isEnabled(CommandIDs.addCell);
    const actions: ICardActions = {
      onOpen: this._open,
      onAdd: canAdd ? this._add : null,
      onStop: this._stop,
      onCopy: this._copy,
      onDecide: this._decide,
      onLook: this.isVisible ? this._look : null,
      kernelOf: this._events?.kernelOf ?? noKernel,
      workspaceDir: this._events?.workspaceDir ?? ''
    };
    const names = Object.keys(actions) as (keyof ICardActions)[];
    const last = this._lastActions;
    if (!last || names.some(name => last[name] !== actions[name])) {
      this._lastActions = actions;
    }
    return this._lastActions!;
  }

  private get _isFleet(): boolean {
    return this._events !== this._runtime.current;
  }

  private readonly _choose = (fleet: string): void =>
    this._runtime.choose(fleet);

  private readonly _ask = (): void => this.ask();

  private readonly _look: IActivity['look'] = async (card, seen) => {
    if (!this._events) {
      throw new RuntimeGoneError();
    }
    return this._events.look(card, seen);
  };

  private readonly _setFollow = (follow: boolean): void => {
    this.follow = follow;
  };

  private readonly _endFilter = (): void => {
    this.isFiltering = false;
  };

  private readonly _showCleared = (): void => {
    this._cleared = NOTHING;
    this.update();
  };

  private readonly _openMenu = (button: HTMLElement): void => {
    const { right, bottom } = button.getBoundingClientRect();
    this.menu?.open(right, bottom, { horizontalAlignment: 'right' });
  };

  private get _finished(): ReadonlySet<string> {
    const turns = this._isFleet ? [] : this._agents.conversation?.turns;
    return finishedKeys(this._events?.entries ?? [], turns ?? []);
  }

  /** Return once whether the prompt box should get the focus. */
  private readonly _takeFocus = (): boolean => {
    const wantsFocus = this._wantsFocus;
    this._wantsFocus = false;
    return wantsFocus;
  };

  private _review(): void {
    const { reviewNext, showChanges } = CommandIDs;
    const isOpen = this._commands.isEnabled(reviewNext);
    this._run(isOpen ? reviewNext : showChanges);
  }

  private readonly _run = (id: string, args = {}): void =>
    void this._commands.execute(id, args);

  private readonly _open = (card: ICard): IOpenCard | undefined =>
    this._events?.open(card);

  private readonly _add = (card: ICard): void => {
    const { event, generation } = origin(card);
    this._run(CommandIDs.addCell, { event, generation });
  };

  private readonly _decide = (card: ICard, verdict: IVerdict): void => {
    const { id: event, generation } = card;
    const { approve, ...others } = verdict;
    const id = approve ? CommandIDs.approve : CommandIDs.reject;
    this._run(id, { event, generation, ...others });
  };

  private readonly _stop = ({ id: event, generation }: ICard): void => {
    this._run(CommandIDs.stop, { event, generation });
  };

  private readonly _copy = (card: ICard, form: CopyForm): void => {
    const { id: event, generation } = card;
    this._run(CommandIDs.copyAction, { event, generation, form });
  };

  /** Redraw, and show the number of pending actions even while the panel is hidden. */
  private _onChanged(): void {
    this.update();
    const count = this._events?.waiting.length ?? 0;
    this.title.className = count > 0 ? 'oh-mod-waiting' : '';
    this.title.caption =
      count > 0
        ? trans._n(
            'OpenHands: %1 action waits for you',
            'OpenHands: %1 actions wait for you',
            count
          )
        : trans.__('OpenHands');
  }

  private _events: IActivity | null = null;
  private readonly _conversation: IConversationActions;
  private _follow = true;
  private _isFlat = false;
  private _isFiltering = false;
  private _cleared: ReadonlySet<string> = NOTHING;
  private _wantsFocus = false;
  private _shownCount = 0;
  private _lastActions: ICardActions | null = null;
}

const noKernel = () => '';

const NOTHING: ReadonlySet<string> = new Set();

/** Return whether the panel is hidden only because the application hides briefly for a theme change. */
function isShownOrReloading(widget: Widget): boolean {
  const { isHidden, parent } = widget;
  return parent === null || (!isHidden && isShownOrReloading(parent));
}
