import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import type { IActivity } from '../tokens.js';
import { trans } from '../translation.js';
import { ohIcon } from './icons.js';

interface INoticeProps {
  events: IActivity | null;
  /** Whether the notice has the panel to itself. */
  isEmpty: boolean;
}

/** Notice that explains why there are no (further) cards, and what to do. */
export function Notice({ events, isEmpty }: INoticeProps) {
  const state = events?.state;
  if (!isEmpty && (state === 'ready' || state === 'unknown')) {
    return null;
  }
  return (
    <div className={`oh-Notice ${isEmpty ? 'oh-mod-alone' : ''}`}>
      {isEmpty && <ohIcon.react className="oh-Notice-icon" tag="span" />}
      <Words events={events} />
    </div>
  );
}

function Words({ events }: Omit<INoticeProps, 'isEmpty'>) {
  switch (events?.state) {
    case undefined:
      return (
        <p>{trans.__('Open a notebook to see the actions in its kernel.')}</p>
      );
    case 'no-kernel':
      return <p>{trans.__('%1 has no kernel.', events!.name)}</p>;
    case 'unknown':
      return <p>{trans.__('Reading the log of the kernel…')}</p>;
    case 'not-loaded':
      return (
        <>
          <p>
            {trans.__(
              'This kernel has no runtime. Load one, or run this in a cell:'
            )}
          </p>
          <code className="oh-Notice-code">%load_ext oh_jupyter</code>
          <LoadButton events={events} />
        </>
      );
    case 'failed':
      return (
        <>
          <p>{trans.__('Cannot read earlier events: %1', events!.error)}</p>
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

/** Button that loads a runtime and shows errors. */
function LoadButton(props: { events: IActivity }) {
  const { events } = props;
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
