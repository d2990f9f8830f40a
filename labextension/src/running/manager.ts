import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IRunningSessions } from '@jupyterlab/running';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal, type ISignal } from '@lumino/signaling';

import { agentIcon } from '../agent/icon.js';
import { askKernel } from '../control/request.js';
import { askOnControl } from '../events/control.js';
import { isAction, type IEventMessage } from '../events/wire.js';
import { ohIcon } from '../log/icons.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import {
  hasRuntime,
  resourcesOf,
  serverKernels,
  type IServerKernel
} from './kernels.js';
import { readResources, type IResource } from './resources.js';

/** What an observation tells to have been started. */
const STARTED_BY: Readonly<Record<string, IResource['kind']>> = {
  run: 'shell',
  browse: 'browser'
};

/** A kernel that has a runtime, and what that has started. */
interface IRuntimeEntry {
  readonly kernel: IServerKernel;
  readonly resources: readonly IResource[];
}

/** The section of runtimes among what is running: their shells, browsers and agents. */
export class RuntimesManager implements IRunningSessions.IManager {
  /**
   * @param app - In whose server the kernels run, and where notebooks are opened.
   * @param notebooks - Those that are open.
   * @param runtime - Tells when something happens in their kernels.
   * @param trans - The language that it speaks.
   * @param onFailure - Told when something could not be ended.
   */
  constructor(
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    runtime: IOhRuntime,
    trans: TranslationBundle,
    onFailure: (error: unknown) => void
  ) {
    this._app = app;
    this._notebooks = notebooks;
    this._trans = trans;
    this._onFailure = onFailure;
    this.name = trans.__('OpenHands');
    this.shutdownLabel = trans.__('End');
    this.shutdownAllLabel = trans.__('End All');
    this.shutdownAllConfirmationText = trans.__(
      'Are you sure you want to end all runtimes, with their shells, browsers and agents? The kernels stay.'
    );
    notebooks.currentChanged.connect(this.refreshRunning, this);
    const { kernels, sessions } = app.serviceManager;
    kernels.runningChanged.connect(this._onKernels, this);
    sessions.runningChanged.connect(this._onKernels, this);
    runtime.arrived.connect(this._onArrived, this);
    const onChanged = (events: IKernelEvents) => {
      const isReady = events.state === 'ready';
      if (isReady !== this._ready.has(events)) {
        this._ready[isReady ? 'add' : 'delete'](events);
        this.refreshRunning();
      }
    };
    const follow = () => runtime.current?.changed.connect(onChanged);
    runtime.currentChanged.connect(follow);
    follow();
  }

  readonly name: string;
  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly shutdownAllConfirmationText: string;

  get runningChanged(): ISignal<this, void> {
    return this._runningChanged;
  }

  running(): IRunningSessions.IRunningItem[] {
    return this._entries.map(entry => ({
      icon: () => ohIcon,
      label: () => this._label(entry),
      labelTitle: () => entry.kernel.path || entry.kernel.id,
      context: 'oh-jupyter-runtime',
      ...(entry.kernel.path && { open: () => this._open(entry.kernel.path) }),
      shutdown: () => this._unload([entry]),
      children: entry.resources.map(resource => this._item(entry, resource))
    }));
  }

  shutdownAll(): void {
    this._unload(this._entries);
  }

  /** One request at a time: calls during a request ask once more after it. */
  refreshRunning(): void {
    this._stale = true;
    this._asking ??= this._refresh().finally(() => {
      this._asking = null;
    });
  }

  /** Something may have been started of which nothing is known yet. */
  private _onArrived(_: unknown, { generation, event }: IEventMessage): void {
    const kind = isAction(event) ? '' : (STARTED_BY[event.observation] ?? '');
    const isMessage = isAction(event) && event.action === 'message';
    const key = `${generation}/${kind}`;
    if (isMessage || (kind && !this._seen.has(key))) {
      this._seen.add(key);
      this.refreshRunning();
    }
  }

  private _item(
    { kernel }: IRuntimeEntry,
    resource: IResource
  ): IRunningSessions.IRunningItem {
    const { kind, name, detail } = resource;
    const labels = {
      shell: this._trans.__('Shell'),
      browser: this._trans.__('Browser %1', name),
      agent: this._trans.__('Agent %1', name)
    };
    const request = { op: 'end_resource', kind, name };
    return {
      icon: () => (kind === 'agent' ? agentIcon : ohIcon),
      label: () => labels[kind],
      detail: () => detail,
      context: `oh-jupyter-${kind}`,
      shutdown: () =>
        this._end(async () => {
          await this._connected(kernel, open => askKernel(open, request));
        })
    };
  }

  /**
   * Take runtimes out of their kernels: they are gone from the list at once. Who was asked before
   * may answer after that as if they were there, so all are asked again.
   */
  private _unload(entries: readonly IRuntimeEntry[]): void {
    for (const entry of entries) {
      this._connected(entry.kernel, unload).then(() => {
        this._seen.clear();
        this._put(
          this._entries.filter(({ kernel }) => kernel.id !== entry.kernel.id)
        );
        this.refreshRunning();
      }, this._onFailure);
    }
  }

  private _end(end: () => Promise<void>): void {
    void end()
      .catch(this._onFailure)
      .finally(() => {
        this._seen.clear();
        this.refreshRunning();
      });
  }

  /** Ask all kernels of the server what runs in them; nothing is loaded for that. */
  private async _refresh(): Promise<void> {
    while (this._stale) {
      this._stale = false;
      const { kernels, sessions } = this._app.serviceManager;
      await Promise.all([kernels.ready, sessions.ready]);
      const found = serverKernels(this._app.serviceManager);
      const ids = new Set(found.map(({ id }) => id));
      this._put(this._entries.filter(({ kernel }) => ids.has(kernel.id)));
      // One that does not answer keeps none of the others from being listed.
      await Promise.all(
        found.map(async kernel => {
          const entry = await this._entry(kernel).catch(() => null);
          const others = this._entries.filter(
            each => each.kernel.id !== kernel.id
          );
          this._put(entry ? [...others, entry] : others);
        })
      );
    }
  }

  private _put(entries: readonly IRuntimeEntry[]): void {
    this._entries = entries;
    this._runningChanged.emit();
  }

  private async _entry(kernel: IServerKernel): Promise<IRuntimeEntry | null> {
    const { serverSettings } = this._app.serviceManager;
    if (!(await hasRuntime(serverSettings, kernel))) {
      return null;
    }
    const open = this._openConnection(kernel);
    if (!open) {
      return { kernel, resources: await resourcesOf(serverSettings, kernel) };
    }
    // It is there all the same, if it is too busy to say more.
    const reply = await askOnControl(open, { op: 'status' }).catch(() => null);
    const resources = reply ? readResources(reply.fields) : [];
    return resources && { kernel, resources };
  }

  /** Use the connection of an open notebook, or one that is made for this. */
  private async _connected<T>(
    kernel: IServerKernel,
    use: (kernel: Kernel.IKernelConnection) => Promise<T>
  ): Promise<T> {
    const open = this._openConnection(kernel);
    if (open) {
      return use(open);
    }
    const { kernels } = this._app.serviceManager;
    const { model } = kernel;
    const made = kernels.connectTo({ model, handleComms: false });
    try {
      return await use(made);
    } finally {
      made.dispose();
    }
  }

  private _openConnection({
    id
  }: IServerKernel): Kernel.IKernelConnection | null {
    const kernelOf = (panel: NotebookPanel | undefined) =>
      panel?.sessionContext.session?.kernel ?? null;
    return kernelOf(this._notebooks.find(panel => kernelOf(panel)?.id === id));
  }

  private _label({ kernel: { name, path } }: IRuntimeEntry): string {
    return path ? name : this._trans.__('%1 without a notebook', name);
  }

  private _open(path: string): void {
    void this._app.commands
      .execute('docmanager:open', { path })
      .catch(this._onFailure);
  }

  /** The server tells of every activity, too. */
  private _onKernels(): void {
    const ids = serverKernels(this._app.serviceManager)
      .map(({ id, path }) => `${id} ${path}`)
      .sort()
      .join();
    if (ids !== this._ids) {
      this._ids = ids;
      this.refreshRunning();
    }
  }

  private readonly _app: JupyterFrontEnd;
  private readonly _notebooks: INotebookTracker;
  private readonly _trans: TranslationBundle;
  private readonly _onFailure: (error: unknown) => void;
  private readonly _runningChanged = new Signal<this, void>(this);
  private readonly _ready = new WeakSet<IKernelEvents>();
  private readonly _seen = new Set<string>();
  private _entries: readonly IRuntimeEntry[] = [];
  private _asking: Promise<void> | null = null;
  private _stale = false;
  private _ids = '';
}

/** Take the runtime out of a kernel, which stays with its variables. */
async function unload(kernel: Kernel.IKernelConnection): Promise<void> {
  const code = '%unload_ext oh_jupyter';
  const content = { code, silent: true, store_history: false };
  await kernel.requestExecute(content).done;
}
