import type { ICard } from '../events/card.js';
import { kindLabel } from '../log/labels.js';
import { tellsMore } from '../log/sections.js';
import { kind, summary } from '../log/summary.js';
import { trans } from '../translation.js';

/** Notifications cut longer texts. */
const SHOWN_CHARS = 140;

/** Limit of an action's title, to leave space for its reason. */
const TITLE_CHARS = 60;

/** Say who wants to do what a card shows. */
export function agentLabel(agent: string): string {
  return trans.__('%1 wants to do this.', agent);
}

export function reasonLabel(reason: string): string {
  return reason === ''
    ? trans.__('It starts only after your approval.')
    : trans.__('It waits because %1.', reason);
}

export function sandboxLabel(sandboxed: boolean): string {
  return sandboxed
    ? trans.__('It would run in a sandbox.')
    : trans.__('It would not be sandboxed.');
}

export function expiryLabel(seconds: number): string {
  const [minutes, rest] = [Math.floor(seconds / 60), Math.floor(seconds % 60)];
  const left = `${minutes}:${String(rest).padStart(2, '0')}`;
  return trans.__('Rejects itself in %1', left);
}

export function failureLabel(error: string): string {
  return trans.__('Failed: %1', error);
}

/** Text of a notification for people who do not see the card. */
export function notificationLabel(card: ICard, name: string): string {
  const { agent = '', error = '', reason = '' } = card.confirmation ?? {};
  const title = shortened(summary(card).title || kindLabel(kind(card)));
  const what =
    agent === ''
      ? trans.__('“%1”', title)
      : trans.__('“%1” by %2', title, shortened(agent));
  if (error !== '') {
    return trans.__('%1 still waits for you in %2: %3', what, name, error);
  }
  return reason === ''
    ? trans.__('%1 waits for you in %2', what, name)
    : trans.__('%1 waits for you in %2: %3', what, name, reason);
}

/** Return whether a notification shows an Action and its reasons in full, so that it can be approved there. */
export function isFullyShown(card: ICard, name: string): boolean {
  const { title, detail } = summary(card);
  return (
    !card.confirmation?.form &&
    !tellsMore(card) &&
    detail === '' &&
    title.length <= TITLE_CHARS &&
    notificationLabel(card, name).length <= SHOWN_CHARS
  );
}

function shortened(title: string): string {
  return title.length > TITLE_CHARS
    ? `${title.slice(0, TITLE_CHARS - 1)}…`
    : title;
}
