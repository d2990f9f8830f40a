/** Events and cards for tests. */
import type { IWaiting } from './events/api.js';
import type { ICard, IConfirmation } from './events/card.js';
import type { IAction, IObservation } from './events/wire.js';

/** An Action by its id. */
export function action(
  id: number,
  type = 'run',
  args: Record<string, unknown> = { command: `command ${id}` },
  more: Partial<IAction> = {}
): IAction {
  return {
    id,
    timestamp: null,
    source: 'agent',
    message: '',
    clipped: false,
    action: type,
    args,
    ...more
  };
}

/** An Observation by its id and the Action's. */
export function observation(
  id: number,
  cause: number | null,
  type = 'run',
  content = '',
  extras: Record<string, unknown> = { metadata: { exit_code: 0 } },
  more: Partial<IObservation> = {}
): IObservation {
  return {
    id,
    cause,
    timestamp: null,
    source: 'agent',
    message: '',
    clipped: false,
    observation: type,
    content,
    extras,
    ...more
  };
}

/** What the server tells of an Action that waits. */
export function waits(id: number, reason: string): IWaiting {
  return { id, reason, diff: '', expires: 0 };
}

/** What is known of a card that waits where the kernel tells nothing more. */
export const UNDECIDED: IConfirmation = {
  reason: '',
  diff: '',
  expires: null,
  asked: true,
  busy: false,
  error: ''
};

/** A card of an Action and its Observation. */
export function card(
  asked: IAction | null,
  answer: IObservation | null = null,
  lost = false
): ICard {
  const id = asked?.id ?? answer?.id ?? 0;
  return {
    key: `g/${id}`,
    generation: 'g',
    id,
    action: asked,
    observation: answer,
    confirmation: null,
    lost
  };
}
