/** Task that runs one at a time; requests during a run repeat it once afterwards. */
export class SerialTask {
  constructor(private readonly _task: () => Promise<void>) {}

  /** Promise of the current run, or null. */
  get running(): Promise<void> | null {
    return this._running;
  }

  async run(): Promise<void> {
    this._isStale = true;
    this._running ??= this._repeat().finally(() => {
      this._running = null;
    });
    await this._running;
  }

  private async _repeat(): Promise<void> {
    while (this._isStale) {
      this._isStale = false;
      await this._task();
    }
  }

  private _running: Promise<void> | null = null;
  private _isStale = false;
}
