import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IRunningSessions } from '@jupyterlab/running';
import type { Kernel, ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal, type ISignal } from '@lumino/signaling';

import { agentIcon } from '../agent/icon.js';
import { askKernel } from '../control/request.js';
import { askRuntime } from '../events/api.js';
import { askOnControl } from '../events/control.js';
import { isAction, type IEventMessage } from '../events/wire.js';
import { ohIcon } from '../log/icons.js';
import type { IKernelEvents, IOhRuntime } from '../tokens.js';
import { readResources, type IResource } from './resources.js';

/** What an observation tells to have been started. */
const STARTED_BY: Readonly<Record<string, IResource['kind']>> = {
  run: 'shell',
  browse: 'browser'
};

/** A notebook whose kernel has a runtime. */
interface IRuntimeEntry {
  readonly panel: NotebookPanel;
  readonly kernel: Kernel.IKernelConnection;
  readonly resources: readonly IResource[];
}

/** The section of runtimes among what is running: their shells, browsers and agents. */
export class RuntimesManager implements IRunningSessions.IManager {
  /**
   * @param shell - In which notebooks are shown.
   * @param notebooks - Those that are open.
   * @param runtime - Tells when something happens in their kernels.
   * @param settings - Of the server that is asked.
   * @param trans - The language that it speaks.
   * @param onFailure - Told when something could not be ended.
   */
  constructor(
    shell: JupyterFrontEnd.IShell,
    notebooks: INotebookTracker,
    runtime: IOhRuntime,
    settings: ServerConnection.ISettings,
    trans: TranslationBundle,
    onFailure: (error: unknown) => void
  ) {
    this._shell = shell;
    this._notebooks = notebooks;
    this._settings = settings;
    this._trans = trans;
    this._onFailure = onFailure;
    this.name = trans.__('OpenHands');
    this.shutdownLabel = trans.__('End');
    this.shutdownAllLabel = trans.__('End All');
    this.shutdownAllConfirmationText = trans.__(
      'Are you sure you want to end all runtimes, with their shells, browsers and agents? The kernels stay.'
    );
    notebooks.currentChanged.connect(this.refreshRunning, this);
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
    const open = this._entries.filter(({ panel }) => !panel.isDisposed);
    return open.map(entry => ({
      icon: () => ohIcon,
      label: () => entry.panel.sessionContext.name,
      labelTitle: () => entry.panel.context.path,
      context: 'oh-jupyter-runtime',
      open: () => this._shell.activateById(entry.panel.id),
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
          await askKernel(kernel, request);
        })
    };
  }

  /** Take runtimes out of their kernels; these need not be asked whether they are gone. */
  private _unload(entries: readonly IRuntimeEntry[]): void {
    for (const entry of entries) {
      unload(entry).then(() => {
        this._seen.clear();
        this._entries = this._entries.filter(
          ({ kernel }) => kernel !== entry.kernel
        );
        this._runningChanged.emit();
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

  /** Ask the kernels of all open notebooks what runs in them; none is loaded for that. */
  private async _refresh(): Promise<void> {
    while (this._stale) {
      this._stale = false;
      const panels: NotebookPanel[] = [];
      this._notebooks.forEach(panel => panels.push(panel));
      const asked = panels.map(panel => this._entry(panel).catch(() => null));
      const found = await Promise.all(asked);
      this._entries = found.filter(entry => entry !== null);
      this._runningChanged.emit();
    }
  }

  private async _entry(panel: NotebookPanel): Promise<IRuntimeEntry | null> {
    const kernel = panel.sessionContext.session?.kernel;
    if (!kernel) {
      return null;
    }
    // A kernel without a runtime would not answer; to ask for this loads none.
    await askRuntime(this._settings, kernel.id, 'confirmations');
    const { fields } = await askOnControl(kernel, { op: 'status' });
    const resources = readResources(fields);
    return resources && { panel, kernel, resources };
  }

  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _notebooks: INotebookTracker;
  private readonly _settings: ServerConnection.ISettings;
  private readonly _trans: TranslationBundle;
  private readonly _onFailure: (error: unknown) => void;
  private readonly _runningChanged = new Signal<this, void>(this);
  private readonly _ready = new WeakSet<IKernelEvents>();
  private readonly _seen = new Set<string>();
  private _entries: readonly IRuntimeEntry[] = [];
  private _asking: Promise<void> | null = null;
  private _stale = false;
}

/** Take the runtime out of a kernel, which stays with its variables. */
async function unload({ kernel }: IRuntimeEntry): Promise<void> {
  const code = '%unload_ext oh_jupyter';
  const content = { code, silent: true, store_history: false };
  await kernel.requestExecute(content).done;
}
