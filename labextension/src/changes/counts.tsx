import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/** How many lines were added and removed. */
export function LineCounts(props: {
  added: number;
  removed: number;
  trans: TranslationBundle;
}) {
  const { added, removed, trans } = props;
  return (
    <span
      className="oh-LineCounts"
      title={trans.__('%1 lines added, %2 removed', added, removed)}
    >
      <span className="oh-mod-added">+{added}</span>{' '}
      <span className="oh-mod-removed">−{removed}</span>
    </span>
  );
}
