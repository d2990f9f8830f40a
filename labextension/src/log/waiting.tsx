import * as React from 'react';

import { isCard, type LogEntry } from '../events/card.js';
import { trans } from '../translation.js';

/** Button that scrolls to the oldest pending card; screen readers announce its text. */
export function WaitingButton({ entries }: { entries: readonly LogEntry[] }) {
  const count = entries.filter(
    entry => isCard(entry) && entry.confirmation !== null
  ).length;
  return (
    <div className="oh-WaitingRegion" role="status">
      {count > 0 && (
        <button
          className="oh-Waiting"
          onClick={({ currentTarget }) => showWaiting(currentTarget)}
        >
          {trans._n('%1 waits for you', '%1 wait for you', count)}
        </button>
      )}
    </div>
  );
}

function showWaiting(button: HTMLElement): void {
  const card = button
    .closest('.oh-Panel')
    ?.querySelector<HTMLElement>('.oh-Card.oh-mod-waiting');
  card?.scrollIntoView({ block: 'nearest' });
  card?.querySelector<HTMLElement>('.oh-Confirm button')?.focus();
}
