import * as React from 'react';

import { ohIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import type { IContextItem } from './context.js';
import { examplePrompts, type IExample } from './examples.js';
import type { AgentModel } from './model.js';

/** Start of a conversation: three prompts to choose from. */
export function Examples(props: {
  model: AgentModel;
  /** Puts the cursor into the prompt box. */
  onChoose: () => void;
}) {
  const { model, onChoose } = props;
  const { box } = model;
  const [items, setItems] = React.useState<readonly IContextItem[] | null>(
    null
  );
  React.useEffect(() => {
    let isWanted = true;
    model.find('').then(
      found => isWanted && setItems(found),
      () => isWanted && setItems([])
    );
    return () => {
      isWanted = false;
    };
  }, [model, box]);
  const choose = ({ text, context }: IExample) => {
    if (box) {
      box.text = text;
      box.add(...context);
      onChoose();
    }
  };
  return (
    <div className="oh-Notice oh-mod-alone oh-Examples">
      <ohIcon.react className="oh-Notice-icon" tag="span" />
      <p>
        {trans.__(
          'Ask an agent that works in this kernel, with your variables and files.'
        )}
      </p>
      {items !== null && (
        <ul aria-label={trans.__('Examples')}>
          {examplePrompts(items).map(example => (
            <li key={example.text}>
              <button onClick={() => choose(example)}>{example.text}</button>
            </li>
          ))}
        </ul>
      )}
      <p>{trans.__('Or act yourself, with a magic in a cell:')}</p>
      <code className="oh-Notice-code">%oh_run ls</code>
    </div>
  );
}
