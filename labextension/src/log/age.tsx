import { Time } from '@jupyterlab/coreutils';
import * as React from 'react';

import { trans } from '../translation.js';
import { MINUTE_MS, useMinutes } from './minutes.js';

/** Time that has passed since an event. */
export function Age({ iso }: { iso: string | null }) {
  useMinutes();
  const date = new Date(iso ?? '');
  const isRecent = Date.now() - date.getTime() < MINUTE_MS;
  return Number.isNaN(date.getTime()) ? null : (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {isRecent ? trans.__('now') : Time.formatHuman(date, 'narrow')}
    </time>
  );
}
