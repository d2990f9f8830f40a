import { isRecord, text } from '../events/wire.js';

/** Part of a runtime that can be shut down by itself. */
export interface IResource {
  readonly kind: 'shell' | 'browser' | 'agent';
  /** Name of a browser or agent; "" for the shell. */
  readonly name: string;
  /** Directory of the shell, or state of an agent. */
  readonly detail: string;
}

/** Parse the resources in a runtime's status. */
export function readResources(
  runtime: Readonly<Record<string, unknown>>
): readonly IResource[] {
  const resources: IResource[] = [];
  if (typeof runtime.shell === 'number') {
    resources.push({ kind: 'shell', name: '', detail: text(runtime, 'cwd') });
  }
  for (const name of strings(runtime.browsers)) {
    resources.push({ kind: 'browser', name, detail: '' });
  }
  const agents = isRecord(runtime.agents) ? runtime.agents : {};
  for (const [name, state] of Object.entries(agents)) {
    resources.push({ kind: 'agent', name, detail: String(state) });
  }
  return resources;
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.filter(each => typeof each === 'string')
    : [];
}
