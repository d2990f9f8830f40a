import * as React from 'react';

import { Notice } from '../log/notice.js';
import { trans } from '../translation.js';
import { Filmstrip } from './filmstrip.js';
import { toUrl, call } from './keys.js';
import type { BrowserModel } from './model.js';
import { PageView } from './page.js';

interface IViewProps {
  model: BrowserModel;
}

/** Browser with tabs, address bar and page. */
export function BrowserView({ model }: IViewProps) {
  const { view, events } = model;
  if (events?.state !== 'ready') {
    return <Notice events={events} isEmpty />;
  }
  return (
    <>
      <Tabs model={model} />
      <AddressBar model={model} />
      <State model={model} />
      {view !== null && view.number >= 0 ? (
        <PageView model={model} view={view} />
      ) : (
        !model.error && (
          <p className="oh-Note">
            {view?.refused ||
              trans.__('No page is open. Enter an address to open one.')}
          </p>
        )
      )}
      <Filmstrip events={events} />
    </>
  );
}

function Tabs({ model }: IViewProps) {
  const tabs = model.view?.tabs ?? [];
  if (tabs.length === 0) {
    return null;
  }
  return (
    <div className="oh-Browser-tabs">
      {tabs.map(({ title, active }, index) => (
        <span
          key={index}
          className={`oh-Browser-tab ${active ? 'oh-mod-active' : ''}`}
        >
          <button
            aria-pressed={active}
            title={title}
            onClick={() => model.act(call('tab_focus', index))}
          >
            {title}
          </button>
          <button
            aria-label={trans.__('Close %1', title)}
            onClick={() => {
              model.act(call('tab_focus', index));
              model.act(call('tab_close'));
            }}
          >
            ×
          </button>
        </span>
      ))}
      <SignButton
        label={trans.__('New tab')}
        sign="+"
        onClick={() => model.act(call('new_tab'))}
      />
    </div>
  );
}

function SignButton(props: {
  label: string;
  sign: string;
  onClick: () => void;
}) {
  const { label, sign, onClick } = props;
  return (
    <button type="button" aria-label={label} title={label} onClick={onClick}>
      {sign}
    </button>
  );
}

function AddressBar({ model }: IViewProps) {
  const url = model.view?.url ?? '';
  // Keep typed text until it is sent, or the page changes.
  const [typed, setTyped] = React.useState<string | null>(null);
  React.useEffect(() => setTyped(null), [url]);
  const isMarked = model.marks !== null;
  const isHeld = model.view?.held === true;
  const refused = model.view?.refused ?? '';
  return (
    <form
      className="oh-Browser-bar"
      title={refused}
      onSubmit={event => {
        event.preventDefault();
        if (typed?.trim()) {
          model.act(call('goto', toUrl(typed)));
        }
      }}
    >
      <fieldset disabled={refused !== ''}>
        <SignButton
          label={trans.__('Back')}
          sign="←"
          onClick={() => model.act(call('go_back'))}
        />
        <SignButton
          label={trans.__('Forward')}
          sign="→"
          onClick={() => model.act(call('go_forward'))}
        />
        <input
          className="oh-Search jp-mod-styled"
          aria-label={trans.__('Address')}
          placeholder={trans.__('Address')}
          spellCheck={false}
          value={typed ?? url}
          onChange={event => setTyped(event.target.value)}
          onFocus={event => event.target.select()}
        />
        <button
          type="button"
          aria-pressed={isMarked}
          title={trans.__(
            'Show the elements agents can act on, with their bids'
          )}
          onClick={() => void model.showMarks(!isMarked)}
        >
          {trans.__('Marks')}
        </button>
        <button
          type="button"
          className="oh-Browser-hold"
          aria-pressed={isHeld}
          title={
            isHeld
              ? trans.__('Let agents continue')
              : trans.__('Agents wait while you have the browser')
          }
          onClick={() => void model.hold(!isHeld)}
        >
          {isHeld ? trans.__('Hand back') : trans.__('Take over')}
        </button>
      </fieldset>
    </form>
  );
}

/** Status line: holder of the browser, waiting actions, errors. */
function State({ model }: IViewProps) {
  const words = [
    model.view?.held === true && trans.__('You have the browser.'),
    model.waiting > 0 &&
      trans._n(
        '%1 action of an agent waits until you hand it back.',
        '%1 actions of agents wait until you hand it back.',
        model.waiting
      ),
    model.isBusy && trans.__('Working…')
  ].filter(Boolean);
  return (
    <div className="oh-Browser-state" role="status">
      {words.join(' ')}
      {model.error && <p className="oh-mod-error">{model.error}</p>}
    </div>
  );
}
