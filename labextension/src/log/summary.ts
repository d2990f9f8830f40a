import type { ICard } from '../events/card.js';
import { text } from '../events/wire.js';
import { editLabel } from './edit.js';
import { visible } from './visible.js';

/** Kinds of cards, with an icon and a label each. */
export const KINDS = [
  'run',
  'cell',
  'read',
  'write',
  'edit',
  'browse',
  'tool',
  'think',
  'message',
  'finish',
  'download',
  'error',
  'other'
] as const;

export type Kind = (typeof KINDS)[number];

/** Kinds of the wire types that are named differently. */
const KIND_OF_TYPE: Readonly<Record<string, Kind>> = {
  run_ipython: 'cell',
  browse_interactive: 'browse',
  call_tool_mcp: 'tool',
  mcp: 'tool'
};

/** Return the kind of a card. */
export function kind(card: ICard): Kind {
  const type = typeOf(card);
  return KIND_OF_TYPE[type] ?? KINDS.find(each => each === type) ?? 'other';
}

/** Return the wire type of a card's Action, or of its lone Observation. */
export function typeOf({ action, observation }: ICard): string {
  return action?.action ?? observation?.observation ?? '';
}

/** Line that identifies a card. */
export interface ISummary {
  /** Command, file name or address. */
  readonly title: string;
  /** Directory, or kind of edit. */
  readonly detail: string;
  /** Whole path of a file; absent otherwise. */
  readonly path?: string;
}

/** Summarize a card in one line, with paths relative to `root`. */
export function summary(card: ICard, root = ''): ISummary {
  const { action, observation } = card;
  const args = action?.args;
  const extras = observation?.extras;
  switch (typeOf(card)) {
    case 'run':
      return line(
        title(card) || text(args, 'command') || text(extras, 'command')
      );
    case 'run_ipython':
      return line(text(args, 'code') || text(extras, 'code'));
    case 'read':
    case 'write':
      return file(text(args, 'path') || text(extras, 'path'), '', root);
    case 'edit':
      return file(
        text(args, 'path') || text(extras, 'path'),
        editLabel(card),
        root
      );
    case 'browse':
      return page(text(args, 'url') || text(extras, 'url'));
    case 'browse_interactive':
      return {
        ...line(text(args, 'browser_actions')),
        detail: page(text(extras, 'url')).title
      };
    case 'call_tool_mcp':
    case 'mcp':
      return line(text(args, 'name') || text(extras, 'name'));
    case 'think':
      return line(text(args, 'thought') || (observation?.content ?? ''));
    case 'finish':
      return line(text(args, 'final_thought') || text(args, 'thought'));
    case 'message':
      return line(text(args, 'content'));
    case 'download':
      return file(text(extras, 'file_path'), '', root);
    default:
      return line(observation?.content || action?.message || '');
  }
}

/** Return the command that a script runs for a program; "" while a person decides on the script. */
function title({ action, confirmation }: ICard): string {
  return confirmation === null ? text(action?.options, 'title') : '';
}

/** Return the first non-blank line, with a mark if there are more. */
function line(content: string): ISummary {
  const lines = content.split('\n').filter(each => each.trim() !== '');
  const first = visible(lines[0]?.trim() ?? '');
  return { title: lines.length > 1 ? `${first} …` : first, detail: '' };
}

function file(path: string, label: string, root: string): ISummary {
  const slash = path.lastIndexOf('/');
  const directory = below(path.slice(0, Math.max(slash, 0)), root);
  return {
    title: visible(path.slice(slash + 1) || path),
    detail: visible([label, directory].filter(Boolean).join(' · ')),
    path
  };
}

/** Return a path relative to a directory that contains it; "" for the directory itself. */
export function below(path: string, root: string): string {
  const start = `${root.replace(/\/$/, '')}/`;
  return root !== '' && `${path}/`.startsWith(start)
    ? path.slice(start.length)
    : path;
}

function page(url: string): ISummary {
  return { title: visible(url.replace(/^https?:\/\//, '')), detail: '' };
}

/** Return the searchable text of a card in lower case. */
export function searchable(card: ICard): string {
  const { title, detail } = summary(card);
  const args = Object.values(card.action?.args ?? {}).filter(
    value => typeof value === 'string'
  );
  const parts = [typeOf(card), title, detail, ...args];
  parts.push(card.observation?.content ?? '');
  return parts.join('\n').toLowerCase();
}
