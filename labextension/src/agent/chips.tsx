import * as React from 'react';

import { trans } from '../translation.js';
import { itemKey, type IContextItem } from './context.js';

/** What goes with the prompt; each can be removed. */
export function Chips(props: {
  context: readonly IContextItem[];
  onRemove: (item: IContextItem) => void;
  onAdd: () => void;
}) {
  const { context, onRemove, onAdd } = props;
  return (
    <div className="oh-Chips" role="group" aria-label={trans.__('Context')}>
      <button
        type="button"
        className="oh-Chip oh-mod-add"
        title={trans.__(
          'Add a cell, an error, a variable or a file: type @, or drag it here'
        )}
        onClick={onAdd}
      >
        {trans.__('@ Add context')}
      </button>
      {context.map(item => (
        <span
          key={itemKey(item)}
          className={`oh-Chip oh-mod-${item.of ?? item.kind}`}
          title={item.text ?? item.detail ?? item.name}
        >
          <span className="oh-Chip-name">{item.name}</span>
          <button
            type="button"
            aria-label={trans.__('Remove %1 from the prompt', item.name)}
            onClick={() => onRemove(item)}
          >
            ×
          </button>
        </span>
      ))}
    </div>
  );
}
