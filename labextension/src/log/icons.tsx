import { LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import agentSvg from '../../style/icons/agent.svg';
import browserSvg from '../../style/icons/browser.svg';
import changesSvg from '../../style/icons/changes.svg';
import deliveriesSvg from '../../style/icons/deliveries.svg';
import ohSvg from '../../style/icons/oh.svg';
import storeSvg from '../../style/icons/store.svg';
import type { Outcome } from './status.js';
import type { Kind } from './summary.js';

const icon = (name: string, svgstr: string) =>
  new LabIcon({ name: `oh-jupyter:${name}`, svgstr });

/** Icons of panels and their commands. */
export const ohIcon = icon('oh', ohSvg);
export const agentIcon = icon('agent', agentSvg);
export const browserIcon = icon('browser', browserSvg);
export const changesIcon = icon('changes', changesSvg);
export const deliveriesIcon = icon('deliveries', deliveriesSvg);
export const storeIcon = icon('store', storeSvg);

const PAGE = 'M4 2h5.5l3 3v9H4zM9.5 2v3h3';

/** Paths in a 16 by 16 box, drawn with a round pen. */
const KIND_PATHS: Readonly<Record<Kind, string>> = {
  run: 'M3 4.5 6.5 8 3 11.5M8.5 12H13',
  cell: 'M5.5 3H3v10h2.5M10.5 3H13v10h-2.5M6.9 5.9 10 8l-3.1 2.1z',
  read: `${PAGE}M6 8h4.5M6 10.8h4.5`,
  write: `${PAGE}M8.2 7.2v4.4M6 9.4h4.4`,
  edit: 'M3 13l.7-3L10.6 3.1l2.3 2.3L6 12.3zM9 4.7 11.3 7',
  browse:
    'M8 2.4a5.6 5.6 0 1 0 0 11.2A5.6 5.6 0 0 0 8 2.4zM2.5 8h11' +
    'M8 2.5C10 4.2 10.6 6.1 10.6 8S10 11.8 8 13.5C6 11.8 5.4 9.9 5.4 8S6 4.2 8 2.5z',
  tool: 'M6 2v3M10 2v3M4.5 5h7v2.5a3.5 3.5 0 0 1-7 0zM8 11v3',
  think:
    'M6.4 14.3h3.2M6 12v-1C4.7 10.2 4 9 4 7.4a4 4 0 0 1 8 0c0 1.6-.7 2.8-2 3.6v1z',
  message: 'M2.5 3.5h11V11h-6l-3 2.6V11h-2z',
  finish: 'M4 14V2.6M4 3h8l-2 2.8 2 2.7H4',
  download: 'M8 2.5V10M4.8 7 8 10.2 11.2 7M3 13.5h10',
  error: 'M8 2.4 14 13H2zM8 6.6v3M8 11.2v.1',
  other: 'M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z'
};

const OUTCOME_PATHS: Readonly<Partial<Record<Outcome, string>>> = {
  queued: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2 1.3',
  running: 'M8 2.5A5.5 5.5 0 1 1 2.5 8',
  waiting: 'M5.7 3.5v9M10.3 3.5v9',
  ok: 'M3.2 8.6 6.5 12 12.8 4.6',
  failed: 'M4 4l8 8M12 4l-8 8',
  unconfirmed: 'M5.7 3.5v9M10.3 3.5v9',
  unfinished: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2 1.3',
  rejected: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.3 4.3l7.4 7.4',
  cancelled: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM4.3 4.3l7.4 7.4',
  lost: 'M3.5 8h1M7.5 8h1M11.5 8h1'
};

function Stroke({ className, d }: { className: string; d: string }) {
  return (
    <svg className={className} viewBox="0 0 16 16" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

/** Icon of a card's kind. */
export function KindIcon({ kind }: { kind: Kind }) {
  return <Stroke className="oh-Icon" d={KIND_PATHS[kind]} />;
}

/** Icon of a card's outcome, if there is one. */
export function OutcomeIcon({ outcome }: { outcome: Outcome }) {
  const path = OUTCOME_PATHS[outcome];
  const className = `oh-Icon oh-Outcome oh-mod-${outcome}`;
  return path ? <Stroke className={className} d={path} /> : null;
}
