import type { IRuntimeStatus } from '../control/operations.js';

/** Part of a runtime that can be shut down by itself. */
export interface IResource {
  readonly kind: 'shell' | 'browser' | 'agent';
  /** Name of a browser or agent; "" for the shell. */
  readonly name: string;
  /** Directory of the shell, or state of an agent. */
  readonly detail: string;
}

/** Return the resources in a runtime's status. */
export function resourcesIn({
  shell,
  cwd,
  browsers,
  agents
}: IRuntimeStatus): readonly IResource[] {
  const resources: IResource[] = [];
  if (shell !== null) {
    resources.push({ kind: 'shell', name: '', detail: cwd });
  }
  for (const name of browsers) {
    resources.push({ kind: 'browser', name, detail: '' });
  }
  for (const [name, detail] of Object.entries(agents)) {
    resources.push({ kind: 'agent', name, detail });
  }
  return resources;
}
