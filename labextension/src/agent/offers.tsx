import * as React from 'react';

import { reasonOf } from '../events/errors.js';
import { trans } from '../translation.js';
import { itemKey, type IContextItem, type IMention } from './context.js';

/** What can be added to a prompt, and which of it is selected. */
export interface IOffers {
  readonly items: readonly IContextItem[];
  readonly isLoading: boolean;
  readonly selected: number;
  select(index: number): void;
}

/** Search for what a person may mean, while a mention is typed. */
export function useOffers(
  mention: IMention | null,
  find: (query: string) => Promise<readonly IContextItem[]>
): IOffers {
  const [items, setItems] = React.useState<readonly IContextItem[]>([]);
  const [isLoading, setLoading] = React.useState(false);
  const [selected, select] = React.useState(0);
  const query = mention?.query ?? null;
  React.useEffect(() => {
    select(0);
    if (query === null) {
      setItems([]);
      return;
    }
    let isWanted = true;
    setLoading(true);
    find(query)
      .catch((error: unknown) => {
        console.warn(reasonOf(error));
        return [];
      })
      .then(found => {
        if (isWanted) {
          setItems(found);
          setLoading(false);
        }
      });
    return () => {
      isWanted = false;
    };
  }, [query]);
  return { items, isLoading, selected, select };
}

/** Id of an offer, by which the prompt names the selected one. */
export function offerId(index: number): string {
  return `oh-offer-${index}`;
}

/** List above the prompt, from which a click or Enter adds something to it. */
export function OfferList(props: {
  id: string;
  offers: IOffers;
  onChoose: (item: IContextItem) => void;
}) {
  const { id, offers, onChoose } = props;
  const { items, selected } = offers;
  const list = React.useRef<HTMLUListElement>(null);
  React.useEffect(() => {
    list.current?.children[selected]?.scrollIntoView({ block: 'nearest' });
  }, [selected, items]);
  return (
    <>
      <ul
        ref={list}
        id={id}
        className="oh-Offers"
        role="listbox"
        aria-label={trans.__('Add to the prompt')}
      >
        {items.map((item, index) => (
          <li
            key={itemKey(item)}
            id={offerId(index)}
            role="option"
            aria-selected={index === selected}
            // The prompt keeps the focus.
            onMouseDown={event => event.preventDefault()}
            onClick={() => onChoose(item)}
          >
            <span className="oh-Offers-name">{item.name}</span>
            <span className="oh-Offers-detail">{offerDetail(item)}</span>
          </li>
        ))}
      </ul>
      {items.length === 0 && (
        <p className="oh-Note" role="status">
          {offers.isLoading
            ? trans.__('Searching…')
            : trans.__('No cell, variable or file has this name.')}
        </p>
      )}
    </>
  );
}

function offerDetail({ kind, detail = '' }: IContextItem): string {
  return kind === 'file' ? trans.__('file') : detail;
}
