import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IFleet } from '../tokens.js';

export interface ISourceSelectProps {
  fleets: readonly IFleet[];
  /** Name of the fleet that is shown; "" for the notebook in front. */
  chosen: string;
  onChoose: (fleet: string) => void;
  trans: TranslationBundle;
}

/** Chooses whose events are shown, where there are fleets. */
export function SourceSelect(props: ISourceSelectProps) {
  const { fleets, chosen, onChoose, trans } = props;
  const isOver = chosen !== '' && !fleets.some(({ name }) => name === chosen);
  const offered = isOver ? [...fleets, { name: chosen, size: 0 }] : fleets;
  return offered.length === 0 ? null : (
    <select
      className="oh-Kinds oh-Source"
      aria-label={trans.__('Show the events of')}
      value={chosen}
      onChange={({ target }) => onChoose(target.value)}
    >
      <option value="">{trans.__('Notebook in front')}</option>
      {offered.map(({ name, size }) => (
        <option key={name} value={name}>
          {trans._n('%2 (%1 kernel)', '%2 (%1 kernels)', size, name)}
        </option>
      ))}
    </select>
  );
}
