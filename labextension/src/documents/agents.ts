import { Signal } from '@lumino/signaling';

import { agentName } from '../events/actor.js';
import { isAction, type IEventMessage } from '../events/wire.js';

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
        this.name = agentName(event);
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
