import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import type { IActivity } from '../tokens.js';
import { ohIcon } from './icons.js';

interface INoticeProps {
  events: IActivity | null;
  /** There are no cards, so the notice has the panel for itself. */
  isEmpty: boolean;
  trans: TranslationBundle;
}

/** Why there are no cards, or no more of them, and what to do about it. */
export function Notice({ events, isEmpty, trans }: INoticeProps) {
  const state = events?.state;
  if (!isEmpty && (state === 'ready' || state === 'unknown')) {
    return null;
  }
  return (
    <div className={`oh-Notice ${isEmpty ? 'oh-mod-alone' : ''}`}>
      {isEmpty && <ohIcon.react className="oh-Notice-icon" tag="span" />}
      <Words events={events} trans={trans} />
    </div>
  );
}

function Words({ events, trans }: Omit<INoticeProps, 'isEmpty'>) {
  switch (events?.state) {
    case undefined:
      return (
        <p>
          {trans.__('Open a notebook to see what happens in its kernel, here.')}
        </p>
      );
    case 'no-kernel':
      return <p>{trans.__('%1 has no kernel.', events!.name)}</p>;
    case 'unknown':
      return <p>{trans.__('Looking into the kernel…')}</p>;
    case 'not-loaded':
      return (
        <>
          <p>
            {trans.__(
              'There is no runtime in this kernel. Load it, or run this in a cell:'
            )}
          </p>
          <code className="oh-Notice-code">%load_ext oh_jupyter</code>
          <LoadButton events={events} trans={trans} />
        </>
      );
    case 'failed':
      return (
        <>
          <p>
            {trans.__(
              'What happened earlier cannot be read: %1',
              events!.error
            )}
          </p>
          <button
            className="jp-mod-styled jp-mod-accept"
            onClick={() => void events!.refresh()}
          >
            {trans.__('Try again')}
          </button>
        </>
      );
    case 'ready':
      return (
        <>
          <p>{trans.__('Nothing has happened yet. Try this in a cell:')}</p>
          <code className="oh-Notice-code">%oh_run ls</code>
        </>
      );
  }
}

/** Loads a runtime into the kernel, or says why that cannot be. */
function LoadButton(props: { events: IActivity; trans: TranslationBundle }) {
  const { events, trans } = props;
  const [failure, setFailure] = React.useState('');
  const [isLoading, setLoading] = React.useState(false);
  const load = () => {
    setLoading(true);
    events
      .load()
      .catch((error: unknown) => setFailure(reasonOf(error)))
      .finally(() => setLoading(false));
  };
  return (
    <>
      <p>
        <button
          className="oh-Load jp-mod-styled jp-mod-accept"
          disabled={isLoading}
          onClick={load}
        >
          {isLoading ? trans.__('Loading…') : trans.__('Load')}
        </button>
      </p>
      {failure && <p role="alert">{failure}</p>}
    </>
  );
}
