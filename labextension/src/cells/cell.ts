import type { ICodeCell, IOutput } from '@jupyterlab/nbformat';

import { isPending, type ICard } from '../events/card.js';
import { text, type EventSource, type IObservation } from '../events/wire.js';

/** Origin of a cell: its metadata under `oh_jupyter`. */
export interface ICellOrigin {
  /** Who ran it. */
  readonly source: EventSource;
  /** Id of the Action. */
  readonly event: number;
  /** Ids restart in each generation. */
  readonly generation: string;
}

/** Metadata key of a cell's origin. */
export const METADATA_KEY = 'oh_jupyter';

/** Footer that OpenHands' protocol appends to a cell's text, for the agent. */
const FOOTER =
  /(^|\n)\[Jupyter current working directory: [^\n]*\]\n\[Jupyter Python interpreter: [^\n]*\]\s*$/;

/** Text for an empty output. */
const NO_OUTPUT = '[Code executed successfully with no output]';

/** Image formats that notebooks store. */
const IMAGE = /^data:(image\/(?:png|jpeg));base64,([A-Za-z0-9+/=\s]+)$/;

/** Return whether a card can become a cell: code that ended or was lost. */
export function isCell(card: ICard): boolean {
  const type = card.action?.action ?? card.observation?.observation;
  return (
    type === 'run_ipython' &&
    code(card) !== '' &&
    (card.lost || !isPending(card))
  );
}

/** Return the origin of a card's cell. */
export function origin(card: ICard): ICellOrigin {
  const { action, observation, generation, id } = card;
  return {
    source: (action ?? observation)?.source ?? 'agent',
    // An Observation without its Action still has the Action's id.
    event: action?.id ?? observation?.cause ?? id,
    generation
  };
}

/** Return whether cell metadata has an origin. */
export function comesFrom(
  metadata: unknown,
  { event, generation }: ICellOrigin
): boolean {
  const stored = metadata as Partial<ICellOrigin> | null | undefined;
  return stored?.event === event && stored.generation === generation;
}

/** Convert a full card to a notebook cell. */
export function codeCell(card: ICard): ICodeCell {
  return {
    cell_type: 'code',
    // The event does not contain the kernel's count.
    execution_count: null,
    metadata: { [METADATA_KEY]: { ...origin(card) } },
    outputs: card.observation ? outputs(card.observation) : [],
    source: code(card)
  };
}

function code({ action, observation }: ICard): string {
  return text(action?.args, 'code') || text(observation?.extras, 'code');
}

function outputs({ observation, content, extras }: IObservation): IOutput[] {
  switch (observation) {
    case 'run_ipython':
      return [
        ...stream('stdout', printed(content)),
        ...images(extras.image_urls)
      ];
    case 'error':
      return stream('stderr', content);
    default:
      return [];
  }
}

function printed(content: string): string {
  const shown = content.replace(FOOTER, '');
  return shown.trim() === NO_OUTPUT ? '' : shown;
}

function stream(name: 'stdout' | 'stderr', content: string): IOutput[] {
  return content.trim() === ''
    ? []
    : [{ output_type: 'stream', name, text: content.replace(/\n*$/, '\n') }];
}

function images(urls: unknown): IOutput[] {
  return (Array.isArray(urls) ? urls : [])
    .map(url => (typeof url === 'string' ? IMAGE.exec(url) : null))
    .filter(match => match !== null)
    .map(([, type, data]) => ({
      output_type: 'display_data',
      data: { [type!]: data! },
      metadata: {}
    }));
}
