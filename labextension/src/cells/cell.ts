import type { ICodeCell, IOutput } from '@jupyterlab/nbformat';

import { isPending, type ICard } from '../events/card.js';
import { text, type EventSource, type IObservation } from '../events/wire.js';

/** Where a notebook's cell came from: its metadata under `oh_jupyter`. */
export interface ICellOrigin {
  /** Who had it run. */
  readonly source: EventSource;
  /** Id of the Action in the log of its generation. */
  readonly event: number;
  /** Ids are counted afresh in each life of a runtime. */
  readonly generation: string;
}

/** The key in a cell's metadata under which its origin is kept. */
export const METADATA_KEY = 'oh_jupyter';

/** What OpenHands' protocol appends to a cell's text, for the agent. */
const FOOTER =
  /(^|\n)\[Jupyter current working directory: [^\n]*\]\n\[Jupyter Python interpreter: [^\n]*\]\s*$/;

/** What it says in place of no text. */
const NO_OUTPUT = '[Code executed successfully with no output]';

/** Images that notebooks keep as they are. */
const IMAGE = /^data:(image\/(?:png|jpeg));base64,([A-Za-z0-9+/=\s]+)$/;

/** Whether a card can become a cell: code that ran, or that went with its kernel. */
export function isCell(card: ICard): boolean {
  const type = card.action?.action ?? card.observation?.observation;
  return (
    type === 'run_ipython' &&
    code(card) !== '' &&
    (card.lost || !isPending(card))
  );
}

/** Where the cell of a card comes from. */
export function origin(card: ICard): ICellOrigin {
  const { action, observation, generation, id } = card;
  return {
    source: (action ?? observation)?.source ?? 'agent',
    // An Observation whose Action was missed still names it.
    event: action?.id ?? observation?.cause ?? id,
    generation
  };
}

/** Whether a cell's metadata say that it came from there. */
export function comesFrom(
  metadata: unknown,
  { event, generation }: ICellOrigin
): boolean {
  const kept = metadata as Partial<ICellOrigin> | null | undefined;
  return kept?.event === event && kept.generation === generation;
}

/** A card in full length as a cell of a notebook. */
export function codeCell(card: ICard): ICodeCell {
  return {
    cell_type: 'code',
    // The count belongs to the kernel's history, and the event does not tell it.
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
