import * as React from 'react';

import type { IFleet } from '../tokens.js';
import { trans } from '../translation.js';

export interface ISourceSelectProps {
  fleets: readonly IFleet[];
  /** Name of the shown fleet; "" for the current notebook. */
  chosen: string;
  onChoose: (fleet: string) => void;
}

/** Choice between the current notebook and fleets, if there are any. */
export function SourceSelect(props: ISourceSelectProps) {
  const { fleets, chosen, onChoose } = props;
  const hasEnded = chosen !== '' && !fleets.some(({ name }) => name === chosen);
  const offered = hasEnded ? [...fleets, { name: chosen, size: 0 }] : fleets;
  return offered.length === 0 ? null : (
    <select
      className="oh-Kinds oh-Source"
      aria-label={trans.__('Show the events of')}
      value={chosen}
      onChange={({ target }) => onChoose(target.value)}
    >
      <option value="">{trans.__('Current notebook')}</option>
      {offered.map(({ name, size }) => (
        <option key={name} value={name}>
          {trans._n('%2 (%1 kernel)', '%2 (%1 kernels)', size, name)}
        </option>
      ))}
    </select>
  );
}
