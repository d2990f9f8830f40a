import { Dialog, showDialog } from '@jupyterlab/apputils';
import * as React from 'react';

import type { IDelivery } from '../control/operations.js';
import { KernelPanel } from '../control/kernelpanel.js';
import { reasonOf } from '../events/errors.js';
import { deliveriesIcon } from '../log/icons.js';
import { Notice } from '../log/notice.js';
import { copyCommand } from '../notify.js';
import { trans } from '../translation.js';
import { stateOf, type DeliveryState } from './deliveries.js';
import type { DeliveriesModel } from './model.js';

/** Tab that lists undelivered webhook requests. */
export class DeliveriesPanel extends KernelPanel<DeliveriesModel> {
  /** @param _onStore - Shows the files of the store. */
  constructor(
    model: DeliveriesModel,
    private readonly _onStore: () => void
  ) {
    super(model);
    this.addClass('oh-Deliveries');
  }

  protected override view(): React.ReactElement {
    return <Deliveries model={this.model} onStore={this._onStore} />;
  }
}

interface IDeliveriesProps {
  model: DeliveriesModel;
  onStore: () => void;
}

function Deliveries({ model, onStore }: IDeliveriesProps) {
  const [busy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState('');
  const { deliveries: current, events } = model;
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty />;
  }
  const run = (work: () => Promise<void>) => {
    setBusy(true);
    setFailure('');
    work()
      .catch((error: unknown) => setFailure(reasonOf(error)))
      .finally(() => setBusy(false));
  };
  const shown = current?.deliveries ?? [];
  const states = shown.map(stateOf);
  const waiting = states.filter(state => state === 'waiting').length;
  const failed = states.filter(state => state === 'dead').length;
  const hidden = (current?.total ?? 0) - shown.length;
  const error = failure || model.error;
  return (
    <>
      <header className="oh-Deliveries-header">
        <h2>{trans.__('Deliveries of %1', events.name)}</h2>
        <span className="oh-Deliveries-count" role="status">
          {busy
            ? trans.__('Waiting for the receiver…')
            : trans.__('%1 pending, %2 failed', waiting, failed)}
        </span>
        <button
          disabled={busy || failed === 0}
          onClick={() => run(() => model.resend(null))}
        >
          {trans.__('Send all again')}
        </button>
        <button
          disabled={busy || shown.length === waiting}
          onClick={() => run(() => discardAll(model))}
        >
          {trans.__('Delete all')}
        </button>
        <button disabled={busy} onClick={() => run(() => model.refresh())}>
          {trans.__('Refresh')}
        </button>
      </header>
      {error && (
        <p className="oh-Note oh-Deliveries-problem" role="alert">
          {error}
        </p>
      )}
      {current && shown.length === 0 && (
        <Empty hasWebhook={current.has_webhook} onStore={onStore} />
      )}
      {hidden > 0 && (
        <p className="oh-Note">
          {trans.__('%1 older deliveries are not listed.', hidden)}
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
                  onResend={() => run(() => resend(model, delivery))}
                  onDiscard={() => run(() => model.discard(delivery))}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** Configuration that adds a webhook; the person completes the address. */
const SETTING = 'c.OhJupyter.file_store_web_hook_url = "https://example.org/"';

/** Notice in place of an empty list, with the next step. */
function Empty(props: { hasWebhook: boolean; onStore: () => void }) {
  return (
    <div className="oh-Notice oh-mod-alone oh-Deliveries-empty">
      <deliveriesIcon.react className="oh-Notice-icon" tag="span" />
      {props.hasWebhook ? (
        <>
          <p>{trans.__('The receiver has all changes of the store.')}</p>
          <button onClick={props.onStore}>{trans.__('Show the store')}</button>
        </>
      ) : (
        <>
          <p>
            {trans.__(
              'This store has no webhook. To add one, write this in ipython_kernel_config.py, and restart the kernel:'
            )}
          </p>
          <code className="oh-Notice-code">{SETTING}</code>
          <button onClick={() => copyCommand(SETTING)}>
            {trans.__('Copy')}
          </button>
        </>
      )}
    </div>
  );
}

interface IRowProps {
  delivery: IDelivery;
  busy: boolean;
  onResend: () => void;
  onDiscard: () => void;
}

function Row({ delivery, busy, onResend, onDiscard }: IRowProps) {
  const { method, path, attempts, reason, recorded, due } = delivery;
  const state = stateOf(delivery);
  const time = new Date(recorded);
  const tried = trans._n('%1 attempt', '%1 attempts', attempts);
  const labels: Record<DeliveryState, string> = {
    waiting: due
      ? trans.__('pending until %1', new Date(due).toLocaleTimeString())
      : trans.__('pending'),
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

/** Sending a superseded change would overwrite a later one, so ask first. */
async function resend(
  model: DeliveriesModel,
  delivery: IDelivery
): Promise<void> {
  const isOld = stateOf(delivery) === 'superseded';
  const isAgreed =
    !isOld ||
    (await isConfirmed(
      trans.__('Send an older version?'),
      trans.__(
        'The receiver has or will get a later change of %1. Sending this one overwrites it.',
        delivery.path
      ),
      trans.__('Send again')
    ));
  if (isAgreed) {
    await model.resend(delivery, isOld);
  }
}

async function discardAll(model: DeliveriesModel): Promise<void> {
  const isAgreed = await isConfirmed(
    trans.__('Delete all failed deliveries?'),
    trans.__('The receiver will never get these changes.'),
    trans.__('Delete all')
  );
  if (isAgreed) {
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
