import * as React from 'react';

import { trans } from '../translation.js';
import type { IPrompt } from './context.js';

/** Prompts that follow the current one; after a stop or a failure, the first one waits. */
export function Queue(props: {
  queue: readonly IPrompt[];
  /** Whether the first one waits for the person. */
  isHeld: boolean;
  onRemove: (prompt: IPrompt) => void;
  onSend: () => void;
}) {
  const { queue, isHeld, onRemove, onSend } = props;
  return queue.length === 0 ? null : (
    <ol className="oh-Queue" aria-label={trans.__('Next prompts')}>
      {queue.map((prompt, index) => (
        <li key={index}>
          <span className="oh-Queue-text" title={prompt.text}>
            {trans.__('Next: %1', prompt.text)}
          </span>
          {isHeld && index === 0 && (
            <button type="button" onClick={onSend}>
              {trans.__('Send now')}
            </button>
          )}
          <button
            type="button"
            aria-label={trans.__('Remove the prompt %1', prompt.text)}
            title={trans.__('Remove')}
            onClick={() => onRemove(prompt)}
          >
            ×
          </button>
        </li>
      ))}
    </ol>
  );
}
