import { isRecord, text } from '../events/wire.js';

/** What runs in a runtime and can be ended by itself. */
export interface IResource {
  readonly kind: 'shell' | 'browser' | 'agent';
  /** Of a browser or an agent; "" for the shell. */
  readonly name: string;
  /** What it is at: the shell's directory, or whether an agent is busy. */
  readonly detail: string;
}

/** What runs in a runtime, as its server tells it; null where there is no runtime. */
export function readResources(reply: unknown): readonly IResource[] | null {
  const runtime = isRecord(reply) ? reply.runtime : null;
  if (!isRecord(runtime)) {
    return null;
  }
  const found: IResource[] = [];
  if (typeof runtime.shell === 'number') {
    found.push({ kind: 'shell', name: '', detail: text(runtime, 'cwd') });
  }
  for (const name of strings(runtime.browsers)) {
    found.push({ kind: 'browser', name, detail: '' });
  }
  const agents = isRecord(runtime.agents) ? runtime.agents : {};
  for (const [name, state] of Object.entries(agents)) {
    found.push({ kind: 'agent', name, detail: String(state) });
  }
  return found;
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.filter(each => typeof each === 'string')
    : [];
}
