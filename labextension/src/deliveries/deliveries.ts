import { isRecord, number, text } from '../events/wire.js';

/** A change of the store that its webhook's receiver does not have. */
export interface IDelivery {
  readonly id: string;
  /** `POST` or `DELETE`. */
  readonly method: string;
  readonly path: string;
  readonly bytes: number;
  /** A superseded one is dead, and a later change of the file was accepted or waits. */
  readonly state: 'waiting' | 'dead' | 'superseded';
  readonly attempts: number;
  /** Why it was not accepted the last time; "" if it was not tried yet. */
  readonly reason: string;
  /** ISO 8601 time of the change. */
  readonly recorded: string;
  /** ISO 8601 time of the next attempt; "" if that is at once, or never. */
  readonly due: string;
}

export interface IDeliveries {
  /** Whether the store reports to a webhook at all. */
  readonly hasWebhook: boolean;
  /** How many there are, of which only the newest may be listed. */
  readonly total: number;
  readonly deliveries: readonly IDelivery[];
}

/** Read the kernel's answer. */
export function readDeliveries(reply: unknown): IDeliveries {
  if (!isRecord(reply) || !Array.isArray(reply.deliveries)) {
    throw new Error('The kernel sent deliveries of an unknown form.');
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
