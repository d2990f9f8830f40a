import type { ICard } from '../events/card.js';
import { text, type IAction, type IObservation } from '../events/wire.js';
import type { SectionName } from './labels.js';
import { withoutAnsi } from './status.js';
import { summary } from './summary.js';
import { visible } from './visible.js';

/** How to show a part. */
export type SectionKind = 'prose' | 'code' | 'diff' | 'image' | 'error';

export interface ISection {
  readonly name: SectionName;
  readonly kind: SectionKind;
  /** Text, or data URL of an image. */
  readonly body: string;
}

/** Only data URLs: an event must not make the browser fetch anything. */
const IMAGE = /^data:image\/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]+$/;

export function isImage(body: string): boolean {
  return IMAGE.test(body);
}

/** Return the parts of an opened card in reading order. */
export function sections(card: ICard): readonly ISection[] {
  const { action, observation, confirmation } = card;
  const diff = section('diff', 'diff', confirmation?.diff ?? '');
  return [
    ...(action ? actionParts(action, observation, diff) : []).map(part => ({
      ...part,
      body: visible(part.body)
    })),
    ...(observation ? observationParts(observation) : [])
  ].filter(({ kind, body }) =>
    kind === 'image' ? isImage(body) : body.trim() !== ''
  );
}

/** Return whether an opened card shows more of its Action than the title. */
export function tellsMore(card: ICard): boolean {
  const { title } = summary(card);
  return (
    card.action?.clipped === true ||
    sections(card).some(({ body }) => body.trim() !== title)
  );
}

function section(name: SectionName, kind: SectionKind, body: string): ISection {
  return { name, kind, body };
}

function actionParts(
  { action, args, options }: IAction,
  observation: IObservation | null,
  diff: ISection
): ISection[] {
  const thought = section('thought', 'prose', text(args, 'thought'));
  switch (action) {
    case 'run':
      return [thought, section('command', 'code', text(args, 'command'))];
    case 'run_ipython':
      return [thought, section('code', 'code', text(args, 'code'))];
    case 'write':
      return [
        thought,
        diff.body === '' ? section('text', 'code', text(args, 'content')) : diff
      ];
    case 'edit':
      return [
        thought,
        diff,
        ...editParts(
          args,
          text(observation?.extras, 'diff') + diff.body !== ''
        ),
        section('arguments', 'code', options ? json(options) : '')
      ];
    case 'browse_interactive':
      return [thought, section('calls', 'code', text(args, 'browser_actions'))];
    case 'read':
    case 'browse':
    case 'think':
      return [thought];
    case 'message':
      return [section('text', 'prose', text(args, 'content'))];
    case 'finish':
      return [section('text', 'prose', text(args, 'final_thought')), thought];
    case 'call_tool_mcp':
      return [thought, section('arguments', 'code', json(args.arguments))];
    default:
      return [section('arguments', 'code', json(args))];
  }
}

/** Texts of an edit that has no diff. */
function editParts(args: IAction['args'], hasDiff: boolean): ISection[] {
  return hasDiff
    ? []
    : [
        section('text', 'code', text(args, 'file_text')),
        section('old', 'code', text(args, 'old_str')),
        section('new', 'code', text(args, 'new_str')),
        section('draft', 'code', text(args, 'content'))
      ];
}

function observationParts({
  observation,
  outcome,
  content,
  extras
}: IObservation): ISection[] {
  switch (observation) {
    case 'run':
      return [section('output', 'code', withoutAnsi(content))];
    case 'run_ipython':
      return [
        section('output', 'code', withoutAnsi(content)),
        ...images(extras.image_urls)
      ];
    case 'read':
      return content.startsWith('data:image/')
        ? [section('image', 'image', content)]
        : [section('text', 'code', content)];
    case 'edit':
      return outcome !== 'done'
        ? [section('error', 'error', content)]
        : [
            section('diff', 'diff', text(extras, 'diff')),
            // The editor's message repeats what a diff shows; a view has no diff.
            section('result', 'code', text(extras, 'diff') ? '' : content)
          ];
    case 'browse':
      return pageParts(content, extras);
    case 'error':
    case 'user_rejected':
      return [section('error', 'error', content)];
    case 'write':
    case 'null':
    case 'think':
      return [];
    case 'mcp':
      return [section('result', 'code', pretty(content))];
    default:
      return [section('result', 'prose', content)];
  }
}

function pageParts(
  content: string,
  extras: IObservation['extras']
): ISection[] {
  const marks = text(extras, 'set_of_marks');
  return [
    section('error', 'error', text(extras, 'last_browser_action_error')),
    section('screenshot', 'image', text(extras, 'screenshot') || marks),
    section('page', 'code', content)
  ];
}

function images(urls: unknown): ISection[] {
  return Array.isArray(urls)
    ? urls
        .filter(url => typeof url === 'string')
        .map(url => section('image', 'image', url))
    : [];
}

function json(value: unknown): string {
  const shown = JSON.stringify(value, null, 2) ?? '';
  return shown === '{}' ? '' : shown;
}

function pretty(content: string): string {
  try {
    return json(JSON.parse(content));
  } catch {
    return content;
  }
}
