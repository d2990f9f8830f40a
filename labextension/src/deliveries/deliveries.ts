import type { IDelivery } from '../control/operations.js';

/** State of a delivery; a later change of the file was accepted or waits if it is superseded. */
export type DeliveryState = IDelivery['state'] | 'superseded';

export function stateOf({ state, superseded }: IDelivery): DeliveryState {
  return state === 'dead' && superseded ? 'superseded' : state;
}
