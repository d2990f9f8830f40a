import * as React from 'react';

import { trans } from '../translation.js';

/** Numbers of added and removed lines. */
export function LineCounts(props: { added: number; removed: number }) {
  const { added, removed } = props;
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
