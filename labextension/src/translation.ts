import type { TranslationBundle } from '@jupyterlab/translation';

/** Translates the texts of all views; every plugin sets it before it draws anything. */
export let trans: TranslationBundle;

export function setTranslation(bundle: TranslationBundle): void {
  trans = bundle;
}
