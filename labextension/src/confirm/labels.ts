import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICard } from '../events/card.js';
import { kindLabel } from '../log/labels.js';
import { tellsMore } from '../log/sections.js';
import { kind, summary } from '../log/summary.js';

/** A notification shows 140 characters; its reason must be among them. */
const TITLE_CHARACTERS = 60;

/** Why an Action waits, as a sentence. */
export function reasonLabel(reason: string, trans: TranslationBundle): string {
  return reason === ''
    ? trans.__('It does not begin before you approve it.')
    : trans.__('It waits because %1.', reason);
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

/** Whether a notification shows all of an Action, so that it can be approved there. */
export function isWhollyShown(card: ICard): boolean {
  return !tellsMore(card) && summary(card).title.length <= TITLE_CHARACTERS;
}

function shortened(title: string): string {
  return title.length > TITLE_CHARACTERS
    ? `${title.slice(0, TITLE_CHARACTERS - 1)}…`
    : title;
}
