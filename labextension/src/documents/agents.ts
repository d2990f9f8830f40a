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

  /** Name of the last agent; "" if unknown. */
  name = '';

  /** Whether an Action of an agent has not ended. */
  get isWorking(): boolean {
    return this._running.size > 0 || this._hasCall;
  }

  /** Record that an agent's tool will change a document. */
  callStarted(): void {
    this.signs += 1;
    this._hasCall = true;
  }

  /** Record that a request of an agent has ended. */
  callEnded(): void {
    this.signs += 1;
    this._hasCall = false;
  }

  /** Record an event of a kernel. */
  observe({ event, generation }: IEventMessage): void {
    if (isAction(event)) {
      if (event.source === 'agent') {
        this.name = nameOf(event.options?.actor);
        this._running.add(`${generation}/${event.id}`);
      }
      return;
    }
    const isRunning = this._running.delete(`${generation}/${event.cause}`);
    if (isRunning || event.source === 'agent') {
      this.signs += 1;
    }
  }

  private _hasCall = false;
  private readonly _running = new Set<string>();
}

/** Return the name of a persona of Jupyter AI, the end of its id. */
function nameOf(actor: unknown): string {
  const persona = isRecord(actor) ? text(actor, 'persona') : '';
  return persona.split(/::|\//).at(-1) ?? '';
}
