import { RuntimeGoneError, reasonOf } from '../events/errors.js';
import type { EventSource } from '../events/wire.js';
import { trans } from '../translation.js';
import type { IStatus, Outcome } from './status.js';
import type { Kind } from './summary.js';

export function kindLabel(kind: Kind): string {
  const labels: Record<Kind, string> = {
    run: trans.__('Run'),
    cell: trans.__('Cell'),
    read: trans.__('Read'),
    write: trans.__('Write'),
    edit: trans.__('Edit'),
    browse: trans.__('Browse'),
    tool: trans.__('Tool'),
    think: trans.__('Thought'),
    message: trans.__('Message'),
    finish: trans.__('Finished'),
    download: trans.__('Download'),
    error: trans.__('Error'),
    other: trans.__('Other')
  };
  return labels[kind];
}

/** Name who acted: an agent by its own name. */
export function sourceLabel(source: EventSource, agent: string): string {
  const labels: Record<EventSource, string> = {
    agent: agent || trans.__('Agent'),
    user: trans.__('Person'),
    environment: trans.__('Runtime')
  };
  return labels[source];
}

export function deciderLabel(by: string): string {
  const labels: Record<string, string> = {
    JupyterLab: trans.__('in JupyterLab'),
    'the notebook': trans.__('in the notebook'),
    REST: trans.__('over REST')
  };
  return labels[by] ?? by;
}

export function statusLabel({ outcome, exitCode }: IStatus): string {
  const labels: Record<Outcome, string> = {
    queued: trans.__('queued'),
    running: trans.__('running'),
    waiting: trans.__('waits for you'),
    unconfirmed: trans.__('waits for approval'),
    ok: trans.__('done'),
    failed:
      exitCode === undefined
        ? trans.__('failed')
        : trans.__('exit code %1', exitCode),
    unfinished: trans.__('still running'),
    rejected: trans.__('rejected'),
    lost: trans.__('lost with the kernel'),
    cancelled: trans.__('cancelled before it started'),
    none: ''
  };
  return labels[outcome];
}

/** Labels of the parts of an opened card. */
export function sectionLabels() {
  return {
    thought: trans.__('Thought'),
    command: trans.__('Command'),
    code: trans.__('Code'),
    calls: trans.__('Browser actions'),
    text: trans.__('Text'),
    old: trans.__('Old text'),
    new: trans.__('New text'),
    draft: trans.__('Draft'),
    arguments: trans.__('Arguments'),
    output: trans.__('Output'),
    diff: trans.__('Changes'),
    image: trans.__('Image'),
    screenshot: trans.__('Screenshot'),
    page: trans.__('Page'),
    result: trans.__('Result'),
    error: trans.__('Error')
  };
}

export type SectionName = keyof ReturnType<typeof sectionLabels>;

/** Return a duration of at least a second in the unit that reads best. */
export function durationLabel(seconds: number): string {
  return seconds < 60
    ? trans.__('%1 s', seconds.toFixed(1))
    : trans.__(
        '%1 min %2 s',
        Math.floor(seconds / 60),
        Math.round(seconds % 60)
      );
}

/** Explain why a card cannot be shown in full. */
export function failureLabel(error: unknown): string {
  if (error instanceof RuntimeGoneError) {
    return trans.__('Shortened: the rest was lost with its runtime.');
  }
  const reason = reasonOf(error);
  return trans.__('Shortened: the rest cannot be read. %1', reason);
}
