import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ICard } from '../events/card.js';
import { text } from '../events/wire.js';
import { summary } from '../log/summary.js';
import { openLightbox } from '../pictures/lightbox.js';
import type { IKernelEvents } from '../tokens.js';
import { trans } from '../translation.js';
import { actorLabel, pageGroups } from './pages.js';

/** Pages that agents saw in this session, by turn; their pictures load once it is open. */
export function Filmstrip({ events }: { events: IKernelEvents }) {
  const [isOpen, setOpen] = React.useState(false);
  return (
    <UseSignal signal={events.changed}>
      {() => {
        const groups = pageGroups(events.entries);
        const count = groups.reduce((sum, { cards }) => sum + cards.length, 0);
        return count === 0 ? null : (
          <details
            className="oh-Filmstrip"
            open={isOpen}
            onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
          >
            <summary>
              {trans._n('%1 page seen', '%1 pages seen', count)}
            </summary>
            {isOpen &&
              groups.map(({ key, label, cards }) => (
                <section key={key}>
                  <h4 title={label}>{label}</h4>
                  <ol aria-label={trans.__('Pages seen: %1', label)}>
                    {cards.map(card => (
                      <Frame key={card.key} events={events} card={card} />
                    ))}
                  </ol>
                </section>
              ))}
          </details>
        );
      }}
    </UseSignal>
  );
}

function Frame({ events, card }: { events: IKernelEvents; card: ICard }) {
  React.useEffect(() => {
    const opened = events.open(card);
    // A picture that is gone leaves a frame with the page's name.
    opened.ready.catch(() => undefined);
    return () => opened.close();
  }, [events, card.key]);
  const { observation } = card;
  const picture = text(observation?.extras, 'screenshot');
  const { title, detail } = summary(card);
  const label = trans.__('%1, by %2', detail || title, actorLabel(card));
  return (
    <li>
      <button
        title={text(observation?.extras, 'url')}
        aria-label={label}
        disabled={picture === ''}
        onClick={() => openLightbox(picture, label)}
      >
        {picture && <img src={picture} alt="" />}
        <span>{label}</span>
      </button>
    </li>
  );
}
