import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { KernelPanel } from '../control/panel.js';
import { reasonOf } from '../events/errors.js';
import { Notice } from '../log/notice.js';
import type { IDelivery } from './deliveries.js';
import type { DeliveriesModel } from './model.js';

/** The tab that lists what a webhook's receiver does not have. */
export class DeliveriesPanel extends KernelPanel<DeliveriesModel> {
  /**
   * @param model - What is listed.
   * @param trans - The language that it speaks.
   */
  constructor(
    model: DeliveriesModel,
    private readonly _trans: TranslationBundle
  ) {
    super(model);
    this.addClass('oh-Deliveries');
  }

  protected override view(): React.ReactElement {
    return <Deliveries model={this.model} trans={this._trans} />;
  }
}

interface IDeliveriesProps {
  model: DeliveriesModel;
  trans: TranslationBundle;
}

function Deliveries({ model, trans }: IDeliveriesProps) {
  const [busy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState('');
  const { deliveries: found, events } = model;
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty trans={trans} />;
  }
  const run = (work: () => Promise<void>) => {
    setBusy(true);
    setFailure('');
    work()
      .catch((error: unknown) => setFailure(reasonOf(error)))
      .finally(() => setBusy(false));
  };
  const shown = found?.deliveries ?? [];
  const waiting = shown.filter(({ state }) => state === 'waiting').length;
  const failed = shown.filter(({ state }) => state === 'dead').length;
  const hidden = (found?.total ?? 0) - shown.length;
  const problem = failure || model.error;
  return (
    <>
      <header className="oh-Deliveries-header">
        <h2>{trans.__('Deliveries of %1', events.name)}</h2>
        <span className="oh-Deliveries-count" role="status">
          {busy
            ? trans.__('Waiting for the receiver…')
            : trans.__('%1 wait, %2 failed', waiting, failed)}
        </span>
        <button
          disabled={busy || failed === 0}
          onClick={() => run(() => model.resend(null))}
        >
          {trans.__('Send all again')}
        </button>
        <button
          disabled={busy || shown.length === waiting}
          onClick={() => run(() => discardAll(model, trans))}
        >
          {trans.__('Delete all')}
        </button>
        <button disabled={busy} onClick={() => run(() => model.refresh())}>
          {trans.__('Refresh')}
        </button>
      </header>
      {problem && (
        <p className="oh-Note oh-Deliveries-problem" role="alert">
          {problem}
        </p>
      )}
      {found && shown.length === 0 && (
        <p className="oh-Note">
          {found.hasWebhook
            ? trans.__('The receiver has all that changed in the store.')
            : trans.__(
                'This store reports to no webhook; the setting file_store_web_hook_url names one.'
              )}
        </p>
      )}
      {hidden > 0 && (
        <p className="oh-Note">
          {trans.__('%1 older ones are not listed.', hidden)}
        </p>
      )}
      {shown.length > 0 && (
        <div className="oh-Deliveries-list">
          <table aria-label={trans.__('Deliveries')}>
            <thead>
              <tr>
                <th>{trans.__('Change')}</th>
                <th>{trans.__('State')}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {[...shown].reverse().map(delivery => (
                <Row
                  key={delivery.id}
                  delivery={delivery}
                  busy={busy}
                  onResend={() => run(() => resend(model, delivery, trans))}
                  onDiscard={() => run(() => model.discard(delivery))}
                  trans={trans}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

interface IRowProps {
  delivery: IDelivery;
  busy: boolean;
  onResend: () => void;
  onDiscard: () => void;
  trans: TranslationBundle;
}

function Row({ delivery, busy, onResend, onDiscard, trans }: IRowProps) {
  const { method, path, state, attempts, reason, recorded, due } = delivery;
  const time = new Date(recorded);
  const tried = trans._n('%1 attempt', '%1 attempts', attempts);
  const labels: Record<IDelivery['state'], string> = {
    waiting: due
      ? trans.__('waits until %1', new Date(due).toLocaleTimeString())
      : trans.__('waits'),
    dead: trans.__('failed'),
    superseded: trans.__('superseded')
  };
  return (
    <tr>
      <td className="oh-Deliveries-path">
        {method} {path}
        <small title={time.toLocaleString()}>{time.toLocaleTimeString()}</small>
      </td>
      <td>
        <span className={`oh-Deliveries-state oh-mod-${state}`}>
          {labels[state]}
        </span>
        <small>{[tried, reason].filter(Boolean).join(': ')}</small>
      </td>
      <td className="oh-Deliveries-buttons">
        {state !== 'waiting' && (
          <>
            <button
              disabled={busy}
              aria-label={trans.__('Send %1 again', path)}
              onClick={onResend}
            >
              {trans.__('Send again')}
            </button>
            <button
              disabled={busy}
              aria-label={trans.__('Delete the delivery of %1', path)}
              onClick={onDiscard}
            >
              {trans.__('Delete')}
            </button>
          </>
        )}
      </td>
    </tr>
  );
}

/** What is superseded would put the receiver back: only if that is meant. */
async function resend(
  model: DeliveriesModel,
  delivery: IDelivery,
  trans: TranslationBundle
): Promise<void> {
  const isOld = delivery.state === 'superseded';
  const isMeant =
    !isOld ||
    (await isConfirmed(
      trans.__('Send an older state?'),
      trans.__(
        'The receiver has, or gets, a later change of %1. This one puts it back.',
        delivery.path
      ),
      trans.__('Send again')
    ));
  if (isMeant) {
    await model.resend(delivery, isOld);
  }
}

async function discardAll(
  model: DeliveriesModel,
  trans: TranslationBundle
): Promise<void> {
  const isMeant = await isConfirmed(
    trans.__('Delete all that failed?'),
    trans.__('The receiver never gets these changes.'),
    trans.__('Delete all')
  );
  if (isMeant) {
    await model.discard(null);
  }
}

async function isConfirmed(
  title: string,
  body: string,
  label: string
): Promise<boolean> {
  const buttons = [Dialog.cancelButton(), Dialog.warnButton({ label })];
  return (await showDialog({ title, body, buttons })).button.accept;
}
