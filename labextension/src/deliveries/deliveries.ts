import { isRecord, number, text } from '../events/wire.js';

/** Change of the store that the webhook's receiver has not accepted. */
export interface IDelivery {
  readonly id: string;
  /** `POST` or `DELETE`. */
  readonly method: string;
  readonly path: string;
  readonly bytes: number;
  /** `superseded`: failed, but a later change of the file was accepted or waits. */
  readonly state: 'waiting' | 'dead' | 'superseded';
  readonly attempts: number;
  /** Error of the last attempt; "" before the first one. */
  readonly reason: string;
  /** ISO 8601 time of the change. */
  readonly recorded: string;
  /** ISO 8601 time of the next attempt; "" for immediately or never. */
  readonly due: string;
}

export interface IDeliveries {
  /** Whether the store has a webhook. */
  readonly hasWebhook: boolean;
  readonly total: number;
  readonly deliveries: readonly IDelivery[];
}

export function readDeliveries(reply: unknown): IDeliveries {
  if (!isRecord(reply) || !Array.isArray(reply.deliveries)) {
    throw new Error('The kernel sent unexpected deliveries.');
  }
  return {
    hasWebhook: reply.has_webhook === true,
    total: number(reply, 'total'),
    deliveries: reply.deliveries.filter(isRecord).map(each => ({
      id: text(each, 'id'),
      method: text(each, 'method'),
      path: text(each, 'path'),
      bytes: number(each, 'size'),
      state: stateOf(each),
      attempts: number(each, 'attempts'),
      reason: text(each, 'reason'),
      recorded: text(each, 'recorded'),
      due: text(each, 'due')
    }))
  };
}

function stateOf(each: Readonly<Record<string, unknown>>): IDelivery['state'] {
  if (each.state !== 'dead') {
    return 'waiting';
  }
  return each.superseded === true ? 'superseded' : 'dead';
}
