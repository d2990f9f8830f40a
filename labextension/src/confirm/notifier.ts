import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IVerdict } from '../events/api.js';
import type { ICard, IConfirmation } from '../events/card.js';
import type { IActivity, IKernelEvents, IOhRuntime } from '../tokens.js';
import { isWhollyShown, notificationLabel } from './labels.js';

interface INotified {
  /** Of the notification. */
  readonly id: string;
  /** What it tells of. */
  readonly confirmation: IConfirmation | null;
}

/** What a notification's buttons do. */
interface IButtons {
  readonly decide: (events: IActivity, card: ICard, verdict: IVerdict) => void;
  readonly show: (events: IActivity) => void;
}

/** Notifies of Actions that wait while nobody sees their cards. */
export class WaitingNotifier {
  /**
   * @param runtime - Tells of notebooks as they come to the front.
   * @param buttons - What the notifications' buttons do.
   * @param trans - The language of the notifications.
   */
  constructor(
    runtime: IOhRuntime,
    buttons: IButtons,
    trans: TranslationBundle
  ) {
    this._buttons = buttons;
    this._trans = trans;
    runtime.shownChanged.connect(this._onShownChanged, this);
    this._onShownChanged(runtime, runtime.shown);
  }

  /** Once in front, a notebook is watched until it is closed; a fleet, while it is chosen. */
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

  /** Several notebooks may share a kernel, and one of them may be seen. */
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
    // JupyterLab may lose an update that comes while it still draws the notification.
    if (!confirmation?.asked || known?.confirmation === confirmation) {
      return;
    }
    const message = notificationLabel(card, events.name, this._trans);
    const actions = confirmation.busy ? [] : this._actions(events, card);
    const isUpdated =
      known && Notification.update({ id: known.id, message, actions });
    // One that was closed comes back only to tell that a decision was lost.
    if (known && (isUpdated || !confirmation.error)) {
      this._notified.set(card.key, { id: known.id, confirmation });
    } else {
      const id = Notification.warning(message, { autoClose: false, actions });
      this._notified.set(card.key, { id, confirmation });
    }
  }

  private _actions(events: IActivity, card: ICard): Notification.IAction[] {
    const decide = (approve: boolean) => (click: MouseEvent) => {
      // It goes when the kernel has heard of it.
      click.preventDefault();
      this._buttons.decide(events, card, { approve });
    };
    const approve: Notification.IAction = {
      label: this._trans.__('Approve'),
      caption: this._trans.__('Let it begin'),
      displayType: 'accent',
      callback: decide(true)
    };
    return [
      // Nobody is to approve what they have not seen.
      ...(isWhollyShown(card, events.name, this._trans) ? [approve] : []),
      {
        label: this._trans.__('Reject'),
        caption: this._trans.__(
          'It is not carried out, and the agent hears so'
        ),
        callback: decide(false)
      },
      {
        label: this._trans.__('Show'),
        caption: this._trans.__('Show all of it in the panel'),
        displayType: 'link',
        callback: () => this._buttons.show(events)
      }
    ];
  }

  private readonly _buttons: IButtons;
  private readonly _trans: TranslationBundle;
  private readonly _watched = new Set<IActivity>();
  private readonly _notified = new Map<string, INotified>();
}
