import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IRunningSessions } from '@jupyterlab/running';
import type { Kernel } from '@jupyterlab/services';
import {
  addIcon,
  CommandToolbarButton,
  terminalIcon
} from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';

import { askKernel } from '../control/request.js';
import { SerialTask } from '../events/serial.js';
import { isAction, type IEventMessage } from '../events/wire.js';
import { CommandIDs } from '../ids.js';
import { agentIcon, browserIcon, ohIcon } from '../log/icons.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { trans } from '../translation.js';
import {
  hasRuntime,
  resourcesOf,
  serverKernels,
  type IServerKernel
} from './kernels.js';
import { resourcesIn, type IResource } from './resources.js';

/** Resources that an observation shows to have started. */
const STARTED_BY: Readonly<Record<string, IResource['kind']>> = {
  run: 'shell',
  browse: 'browser'
};

/** Kernel with a runtime, and the resources of that. */
interface IRuntimeEntry {
  readonly kernel: IServerKernel;
  readonly resources: readonly IResource[];
}

/** Section of runtimes with their shells, browsers and agents among the running sessions. */
export class RuntimesManager implements IRunningSessions.IManager {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _notebooks: INotebookTracker,
    runtime: IOhRuntime,
    private readonly _onFailure: (error: unknown) => void
  ) {
    this.name = trans.__('OpenHands');
    this.shutdownLabel = trans.__('Shut Down');
    this.shutdownAllLabel = trans.__('Shut Down All');
    this.shutdownAllConfirmationText = trans.__(
      'Are you sure you want to shut down all runtimes, with their shells, browsers and agents? The kernels keep running.'
    );
    this.toolbarButtons = [
      new CommandToolbarButton({
        commands: this._app.commands,
        id: CommandIDs.newNotebook,
        icon: addIcon,
        label: ''
      })
    ];
    this._notebooks.currentChanged.connect(this.refreshRunning, this);
    const { kernels, sessions } = this._app.serviceManager;
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

  /** The next step if there is no runtime; JupyterLab has no place for a notice. */
  readonly toolbarButtons: CommandToolbarButton[];
  readonly name: string;
  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly shutdownAllConfirmationText: string;

  running(): IRunningSessions.IRunningItem[] {
    return this._entries.map(({ kernel, resources }) => ({
      icon: () => ohIcon,
      label: () =>
        kernel.path
          ? kernel.name
          : trans.__('%1 without a notebook', kernel.name),
      labelTitle: () => kernel.path || kernel.id,
      context: 'oh-jupyter-runtime',
      ...(kernel.path && { open: () => this._open(kernel.path) }),
      shutdown: () => this._unload([kernel]),
      children: resources.map(resource => this._item(kernel, resource))
    }));
  }

  shutdownAll(): void {
    this._unload(this._entries.map(({ kernel }) => kernel));
  }

  refreshRunning(): void {
    void this._list.run();
  }

  /** Refresh when a new resource may have started. */
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
    kernel: IServerKernel,
    resource: IResource
  ): IRunningSessions.IRunningItem {
    const { kind, name, detail } = resource;
    const labels = {
      shell: trans.__('Shell'),
      browser: trans.__('Browser %1', name),
      agent: trans.__('Agent %1', name)
    };
    const icons = {
      shell: terminalIcon,
      browser: browserIcon,
      agent: agentIcon
    };
    const request = { op: 'end_resource', kind, name } as const;
    return {
      icon: () => icons[kind],
      label: () => labels[kind],
      detail: () => detail,
      context: `oh-jupyter-${kind}`,
      shutdown: () =>
        void this._connected(kernel, open => askKernel(open, request))
          .catch(this._onFailure)
          .finally(() => this._forgetAndRefresh())
    };
  }

  /** Unload runtimes and list them no longer. Requests sent before may still reply, so refresh again. */
  private _unload(kernels: readonly IServerKernel[]): void {
    for (const unloaded of kernels) {
      this._connected(unloaded, unload).then(() => {
        this._put(
          this._entries.filter(({ kernel }) => kernel.id !== unloaded.id)
        );
        this._forgetAndRefresh();
      }, this._onFailure);
    }
  }

  private _forgetAndRefresh(): void {
    this._seen.clear();
    this.refreshRunning();
  }

  /** Refresh the list from all kernels, without loading a runtime. */
  private async _refresh(): Promise<void> {
    const { kernels, sessions } = this._app.serviceManager;
    await Promise.all([kernels.ready, sessions.ready]);
    const running = serverKernels(this._app.serviceManager);
    const ids = new Set(running.map(({ id }) => id));
    this._put(this._entries.filter(({ kernel }) => ids.has(kernel.id)));
    // One silent kernel must not hide the others.
    await Promise.all(
      running.map(async kernel => {
        const entry = await this._entry(kernel).catch(() => null);
        const others = this._entries.filter(
          each => each.kernel.id !== kernel.id
        );
        this._put(entry ? [...others, entry] : others);
      })
    );
  }

  private _put(entries: readonly IRuntimeEntry[]): void {
    this._entries = entries;
    this.runningChanged.emit();
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
    // A runtime that is too busy to reply exists nevertheless.
    const status = await askKernel(open, { op: 'status' }).catch(() => null);
    return { kernel, resources: status ? resourcesIn(status) : [] };
  }

  /** Use a notebook's connection, or a temporary one. */
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
    const connection = kernels.connectTo({ model, handleComms: false });
    try {
      return await use(connection);
    } finally {
      connection.dispose();
    }
  }

  private _openConnection({
    id
  }: IServerKernel): Kernel.IKernelConnection | null {
    const kernelOf = (panel: NotebookPanel | undefined) =>
      panel?.sessionContext.session?.kernel ?? null;
    return kernelOf(this._notebooks.find(panel => kernelOf(panel)?.id === id));
  }

  private _open(path: string): void {
    void this._app.commands
      .execute('docmanager:open', { path })
      .catch(this._onFailure);
  }

  /** The server also reports each activity. */
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

  readonly runningChanged = new Signal<this, void>(this);
  private readonly _ready = new WeakSet<IKernelEvents>();
  private readonly _seen = new Set<string>();
  private _entries: readonly IRuntimeEntry[] = [];
  private readonly _list = new SerialTask(() => this._refresh());
  private _ids = '';
}

/** Unload the runtime from a kernel, which keeps its variables. */
async function unload(kernel: Kernel.IKernelConnection): Promise<void> {
  const code = '%unload_ext oh_jupyter';
  const content = { code, silent: true, store_history: false };
  await kernel.requestExecute(content).done;
}
