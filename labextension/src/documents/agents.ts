import { Signal } from '@lumino/signaling';

import {
  isAction,
  isRecord,
  text,
  type IEventMessage
} from '../events/wire.js';

/** Signs that agents work, which tell their changes of files from those of others. */
export class AgentActivity {
  /** Number of signs so far: each means that an agent may have changed files. */
  signs = 0;

  /** Emitted when an agent's action is recorded: of some tools after what it does. */
  readonly acted = new Signal<this, void>(this);

  /** Name of the last agent; "" if unknown. */
  name = '';

  /** Whether a tool of an agent is changing a document by a save in Jupyter. */
  get isSaving(): boolean {
    return this._isSaving;
  }

  /** Whether an agent is changing files, as far as known. */
  get isWorking(): boolean {
    return this._running.size > 0 || this.isSaving;
  }

  /** Record that a tool begins to change a document; its agent's name may be unknown. */
  beginSaving(agent: string): void {
    this._isSaving = true;
    this.name = agent || this.name;
  }

  /** Record that a request of an agent has ended. */
  requestEnded(): void {
    this.signs += 1;
    this._isSaving = false;
  }

  /** Record an event of a kernel. */
  observe({ event, generation }: IEventMessage): void {
    if (isAction(event)) {
      if (event.source === 'agent') {
        this.name = nameOf(event.options?.actor);
        this._running.add(`${generation}/${event.id}`);
        this.acted.emit();
      }
      return;
    }
    const isRunning = this._running.delete(`${generation}/${event.cause}`);
    if (isRunning || event.source === 'agent') {
      this.signs += 1;
    }
  }

  private _isSaving = false;
  private readonly _running = new Set<string>();
}

/** Return an agent's name as the kernel does: its persona's, its client's, or its command's. */
function nameOf(actor: unknown): string {
  if (!isRecord(actor)) {
    return '';
  }
  const persona = text(actor, 'persona').split(/::|\//).at(-1) ?? '';
  const command = text(actor, 'guest').replace(/-[0-9a-f]{8}$/, '');
  return (
    persona ||
    text(actor, 'client') ||
    command.charAt(0).toUpperCase() + command.slice(1)
  );
}
