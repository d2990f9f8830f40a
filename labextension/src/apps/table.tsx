import * as React from 'react';

import type { ITableColumn, ITablePage } from '../control/operations.js';
import { trans } from '../translation.js';
import type { Host, ICall } from './host.js';
import { start } from './start.js';

const ROWS = 25;

interface IWanted {
  readonly start: number;
  /** Position of the column; null keeps the order of the table. */
  readonly sort: number | null;
  readonly descending: boolean;
  readonly filter: string;
}

/** Table of a data frame, which the person sorts, filters and pages. */
function Table({ host }: { host: Host }) {
  const [call, setCall] = React.useState<ICall | null>(null);
  const [wanted, setWanted] = React.useState<IWanted>({
    start: 0,
    sort: null,
    descending: false,
    filter: ''
  });
  const [page, setPage] = React.useState<ITablePage | null>(null);
  const [error, setError] = React.useState('');
  React.useEffect(() => void host.call.then(setCall), [host]);
  React.useEffect(() => {
    if (call === null) {
      return;
    }
    let isCurrent = true;
    const { name, notebook } = call.arguments;
    const { sort, ...rest } = wanted;
    host
      .callTool('table_rows', {
        name,
        ...(notebook === undefined ? {} : { notebook }),
        ...(sort === null ? {} : { sort }),
        ...rest,
        count: ROWS
      })
      .then(
        answer => {
          if (isCurrent) {
            setError('');
            setPage(answer.structuredContent as ITablePage);
          }
        },
        reason => isCurrent && setError(`${reason.message}`)
      );
    return () => {
      isCurrent = false;
    };
  }, [host, call, wanted]);

  const change = (changes: Partial<IWanted>) =>
    setWanted(current => ({ ...current, start: 0, ...changes }));
  return (
    <div className="oh-App oh-Table">
      <header>
        <b>{String(call?.arguments.name ?? '')}</b>
        <span>{page && sizeLabel(page)}</span>
        <input
          type="search"
          placeholder={trans.__('Filter rows')}
          aria-label={trans.__('Show only rows with this text')}
          value={wanted.filter}
          onChange={({ target }) => change({ filter: target.value })}
        />
      </header>
      {error && <p role="alert">{error}</p>}
      {page && <Rows page={page} wanted={wanted} onChange={change} />}
      {page && <Pager page={page} onChange={change} />}
    </div>
  );
}

interface IPartProps {
  page: ITablePage;
  onChange: (changes: Partial<IWanted>) => void;
}

function Rows({ page, wanted, onChange }: IPartProps & { wanted: IWanted }) {
  return (
    <div className="oh-Table-rows" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th />
            {page.columns.map((column, position) => (
              <Head
                key={position}
                column={column}
                order={wanted.sort === position ? wanted.descending : null}
                onSort={order => onChange(sortBy(position, order))}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {page.rows.map((row, number) => (
            <tr key={number}>
              <th scope="row">{page.index[number]}</th>
              {row.map((value, position) => (
                <td
                  key={position}
                  className={
                    page.columns[position]?.is_number ? 'oh-mod-number' : ''
                  }
                  title={value}
                >
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Head of a column; `order` is whether it sorts the rows in descending order, or null. */
function Head(props: {
  column: ITableColumn;
  order: boolean | null;
  onSort: (order: boolean | null) => void;
}) {
  const { column, order, onSort } = props;
  const next = order === null ? false : order ? null : true;
  const direction =
    order === null ? 'none' : order ? 'descending' : 'ascending';
  return (
    <th scope="col" aria-sort={direction}>
      <button title={column.type} onClick={() => onSort(next)}>
        {column.name}
        <span aria-hidden>{order === null ? '' : order ? ' ▼' : ' ▲'}</span>
      </button>
    </th>
  );
}

function Pager({ page, onChange }: IPartProps) {
  const { start: first, matching } = page;
  const end = first + page.rows.length;
  return (
    <footer>
      <button
        disabled={first === 0}
        onClick={() => onChange({ start: Math.max(0, first - ROWS) })}
      >
        {trans.__('Previous')}
      </button>
      <span role="status">
        {matching === 0
          ? trans.__('No rows')
          : trans.__(
              'Rows %1 to %2 of %3',
              first + 1,
              end,
              matching.toLocaleString('en')
            )}
      </span>
      <button
        disabled={end >= matching}
        onClick={() => onChange({ start: first + ROWS })}
      >
        {trans.__('Next')}
      </button>
    </footer>
  );
}

function sortBy(position: number, order: boolean | null): Partial<IWanted> {
  return order === null
    ? { sort: null, descending: false }
    : { sort: position, descending: order };
}

function sizeLabel(page: ITablePage): string {
  const columns = page.columns.length + page.omitted_columns;
  const shown = trans.__(
    '%1: %2 rows, %3 columns',
    page.kind,
    page.total.toLocaleString('en'),
    columns
  );
  return page.omitted_columns
    ? trans.__('%1 (%2 shown)', shown, page.columns.length)
    : shown;
}

start('oh_jupyter table', Table);
