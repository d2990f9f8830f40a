import type { ICard } from '../events/card.js';
import { text } from '../events/wire.js';

/** The kinds of cards: what their icons, labels and the filter tell apart. */
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

const KIND_OF_TYPE: Readonly<Record<string, Kind>> = {
  run: 'run',
  run_ipython: 'cell',
  read: 'read',
  write: 'write',
  edit: 'edit',
  browse: 'browse',
  browse_interactive: 'browse',
  call_tool_mcp: 'tool',
  mcp: 'tool',
  think: 'think',
  message: 'message',
  finish: 'finish',
  download: 'download',
  error: 'error'
};

/** What a card is about, by the type of its Action. */
export function kind(card: ICard): Kind {
  return KIND_OF_TYPE[typeOf(card)] ?? 'other';
}

/** The type of a card's Action on the wire, or of its lone Observation. */
export function typeOf({ action, observation }: ICard): string {
  return action?.action ?? observation?.observation ?? '';
}

/** One line that tells a card from others of its kind. */
export interface ISummary {
  /** A command, a file's name, an address. */
  readonly title: string;
  /** What helps to place it: a directory, an editor's command. */
  readonly detail: string;
}

/**
 * Say in one line what a card is about.
 *
 * @param root - Directories below it are told as seen from there.
 */
export function summary(card: ICard, root = ''): ISummary {
  const { action, observation } = card;
  const args = action?.args;
  const extras = observation?.extras;
  switch (typeOf(card)) {
    case 'run':
      return line(text(args, 'command') || text(extras, 'command'));
    case 'run_ipython':
      return line(text(args, 'code') || text(extras, 'code'));
    case 'read':
    case 'write':
    case 'edit':
      return file(
        text(args, 'path') || text(extras, 'path'),
        text(args, 'command'),
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

/** The first line that says anything, and a sign that there are more. */
function line(content: string): ISummary {
  const lines = content.split('\n').filter(each => each.trim() !== '');
  const first = lines[0]?.trim() ?? '';
  return { title: lines.length > 1 ? `${first} …` : first, detail: '' };
}

function file(path: string, command: string, root: string): ISummary {
  const slash = path.lastIndexOf('/');
  const directory = below(path.slice(0, Math.max(slash, 0)), root);
  return {
    title: path.slice(slash + 1) || path,
    detail: [command, directory].filter(Boolean).join(' · ')
  };
}

/** A path as seen from a directory; "" if it is that. */
export function below(path: string, root: string): string {
  const start = `${root.replace(/\/$/, '')}/`;
  return root !== '' && `${path}/`.startsWith(start)
    ? path.slice(start.length)
    : path;
}

function page(url: string): ISummary {
  return { title: url.replace(/^https?:\/\//, ''), detail: '' };
}

/** Everything of a card that a person may search for, in lower case. */
export function searchable(card: ICard): string {
  const { title, detail } = summary(card);
  const args = Object.values(card.action?.args ?? {}).filter(
    value => typeof value === 'string'
  );
  const parts = [typeOf(card), title, detail, ...args];
  parts.push(card.observation?.content ?? '');
  return parts.join('\n').toLowerCase();
}
