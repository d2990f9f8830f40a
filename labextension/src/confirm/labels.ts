import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICard } from '../events/card.js';
import { kindLabel } from '../log/labels.js';
import { tellsMore } from '../log/sections.js';
import { kind, summary } from '../log/summary.js';

/** What a notification shows; what is beyond that is cut. */
const SHOWN_CHARS = 140;

/** Of an Action, so that its reason is shown, too. */
const TITLE_CHARS = 60;

/** Why an Action waits, as a sentence. */
export function reasonLabel(reason: string, trans: TranslationBundle): string {
  return reason === ''
    ? trans.__('It does not begin before you approve it.')
    : trans.__('It waits because %1.', reason);
}

/** When an Action is rejected by itself. */
export function expiryLabel(seconds: number, trans: TranslationBundle): string {
  const [minutes, rest] = [Math.floor(seconds / 60), Math.floor(seconds % 60)];
  const left = `${minutes}:${String(rest).padStart(2, '0')}`;
  return trans.__('Rejected by itself in %1.', left);
}

/** Why what a person decided was not done. */
export function failureLabel(error: string, trans: TranslationBundle): string {
  return trans.__('Failed: %1', error);
}

/** What waits, in which notebook and why, for those who do not see its card. */
export function notificationLabel(
  card: ICard,
  name: string,
  trans: TranslationBundle
): string {
  const { error = '', reason = '' } = card.confirmation ?? {};
  const what = shortened(summary(card).title || kindLabel(kind(card), trans));
  if (error !== '') {
    return trans.__('“%1” still waits for you in %2: %3', what, name, error);
  }
  return reason === ''
    ? trans.__('“%1” waits for you in %2', what, name)
    : trans.__('“%1” waits for you in %2: %3', what, name, reason);
}

/** Whether a notification shows all of an Action and of its reasons, so that it can be approved there. */
export function isWhollyShown(
  card: ICard,
  name: string,
  trans: TranslationBundle
): boolean {
  const { title, detail } = summary(card);
  return (
    !tellsMore(card) &&
    detail === '' &&
    title.length <= TITLE_CHARS &&
    notificationLabel(card, name, trans).length <= SHOWN_CHARS
  );
}

function shortened(title: string): string {
  return title.length > TITLE_CHARS
    ? `${title.slice(0, TITLE_CHARS - 1)}…`
    : title;
}
