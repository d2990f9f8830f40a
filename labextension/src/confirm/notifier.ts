import { Notification } from '@jupyterlab/apputils';

import type { IVerdict } from '../events/api.js';
import type { ICard, IConfirmation } from '../events/card.js';
import type { IActivity, IKernelEvents, IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import { isFullyShown, notificationLabel } from './labels.js';

interface INotified {
  readonly id: string;
  /** State when it was last updated. */
  readonly confirmation: IConfirmation | null;
}

interface IButtons {
  readonly decide: (events: IActivity, card: ICard, verdict: IVerdict) => void;
  readonly show: (events: IActivity) => void;
}

/** Notifies of pending Actions whose cards are not visible. */
export class WaitingNotifier {
  constructor(
    runtime: IOhRuntime,
    private readonly _buttons: IButtons
  ) {
    runtime.shownChanged.connect(this._onShownChanged, this);
    this._onShownChanged(runtime, runtime.shown);
  }

  /** Watch a notebook until it is closed, a fleet while it is selected. */
  private _onShownChanged(_: IOhRuntime, shown: IActivity | null): void {
    for (const each of this._watched) {
      if (each !== shown && !('sessionContext' in each)) {
        this._watched.delete(each);
      }
    }
    if (shown && !this._watched.has(shown)) {
      this._watched.add(shown);
      shown.changed.connect(this._update, this);
      if ('sessionContext' in shown) {
        const { disposed } = (shown as IKernelEvents).sessionContext;
        disposed.connect(() => {
          this._watched.delete(shown);
          this._update();
        });
      }
    }
    this._update();
  }

  private _update(): void {
    const unseen = this._unseen();
    for (const [key, { id }] of this._notified) {
      if (!unseen.has(key)) {
        Notification.dismiss(id);
        this._notified.delete(key);
      }
    }
    for (const [events, card] of unseen.values()) {
      this._notify(events, card);
    }
  }

  /** Return pending cards that are not visible in any notebook that shares their kernel. */
  private _unseen(): Map<string, [IActivity, ICard]> {
    const watched = [...this._watched].filter(each => each.waiting.length > 0);
    const seen = new Set(
      watched
        .filter(({ isShown }) => isShown)
        .flatMap(({ waiting }) => waiting.map(({ key }) => key))
    );
    return new Map(
      watched
        .flatMap(each => each.waiting.map(card => [each, card] as const))
        .filter(([, { key }]) => !seen.has(key))
        .map(([each, card]) => [card.key, [each, card]])
    );
  }

  private _notify(events: IActivity, card: ICard): void {
    const known = this._notified.get(card.key);
    const { confirmation } = card;
    // JupyterLab may lose an update while it still draws the notification.
    if (!confirmation?.asked || known?.confirmation === confirmation) {
      return;
    }
    const message = notificationLabel(card, events.name);
    const actions = confirmation.busy ? [] : this._actions(events, card);
    const isUpdated =
      known && Notification.update({ id: known.id, message, actions });
    // A closed notification returns only to report a failed decision.
    if (known && (isUpdated || !confirmation.error)) {
      this._notified.set(card.key, { id: known.id, confirmation });
    } else {
      const id = Notification.warning(message, { autoClose: false, actions });
      this._notified.set(card.key, { id, confirmation });
    }
  }

  private _actions(events: IActivity, card: ICard): Notification.IAction[] {
    const decide = (approve: boolean) => (click: MouseEvent) => {
      // Keep it until the kernel has received the decision.
      click.preventDefault();
      this._buttons.decide(events, card, { approve });
    };
    const approve: Notification.IAction = {
      label: trans.__('Approve'),
      caption: trans.__('Start the action'),
      displayType: 'accent',
      callback: decide(true)
    };
    return [
      // People must see what they approve.
      ...(isFullyShown(card, events.name) ? [approve] : []),
      {
        label: trans.__('Reject'),
        caption: trans.__('Do not run the action, and tell the agent'),
        callback: decide(false)
      },
      {
        label: trans.__('Show'),
        caption: trans.__('Show the whole action in the panel'),
        displayType: 'link',
        callback: () => this._buttons.show(events)
      }
    ];
  }

  private readonly _watched = new Set<IActivity>();
  private readonly _notified = new Map<string, INotified>();
}
