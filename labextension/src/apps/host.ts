import { isRecord } from '../events/wire.js';

/** Version of the protocol between an MCP App and its host. */
const PROTOCOL = '2026-01-26';

/** Result of a tool, as in MCP. */
export interface IToolResult {
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly data?: string;
    readonly mimeType?: string;
  }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** Call of the tool that an app belongs to. */
export interface ICall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

interface IPending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The window that shows this app, which speaks JSON-RPC by `postMessage`.
 *
 * The official SDK would add 500 kB to each app, most of it schemas of messages that no app here uses.
 */
export class Host {
  constructor(private readonly _name: string) {
    window.addEventListener('message', event => {
      if (event.source === window.parent && isRecord(event.data)) {
        this._receive(event.data);
      }
    });
  }

  /** Resolves with the call of the tool, once its arguments are complete. */
  readonly call = new Promise<ICall>(resolve => (this._setCall = resolve));

  /** Resolves with the result of the call, or with null if it was cancelled. */
  readonly result = new Promise<IToolResult | null>(
    resolve => (this._setResult = resolve)
  );

  /** Connect, adopt the host's colours, and report the app's height from now on. */
  async start(root: HTMLElement): Promise<void> {
    const answer = await this._request('ui/initialize', {
      appInfo: { name: this._name, version: '1' },
      appCapabilities: {},
      protocolVersion: PROTOCOL
    });
    this._adopt(isRecord(answer) ? answer.hostContext : undefined);
    this._notify('ui/notifications/initialized', {});
    new ResizeObserver(() =>
      this._notify('ui/notifications/size-changed', {
        height: Math.ceil(root.getBoundingClientRect().height)
      })
    ).observe(root);
  }

  /** Call a tool of the app's server; reject if the tool fails. */
  async callTool(
    name: string,
    args: Readonly<Record<string, unknown>>
  ): Promise<IToolResult> {
    const result = (await this._request('tools/call', {
      name,
      arguments: args
    })) as IToolResult;
    if (result.isError) {
      throw new Error(result.content.map(({ text }) => text ?? '').join('\n'));
    }
    return result;
  }

  private _request(method: string, params: unknown): Promise<unknown> {
    const id = ++this._lastId;
    return new Promise((resolve, reject) => {
      this._pending.set(id, { resolve, reject });
      this._send({ id, method, params });
    });
  }

  private _notify(method: string, params: unknown): void {
    this._send({ method, params });
  }

  private _send(message: object): void {
    // The host's origin is unknown, and nothing that is sent is secret from it.
    window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
  }

  private _receive(message: Record<string, unknown>): void {
    const { id, method } = message;
    const params = isRecord(message.params) ? message.params : {};
    if (typeof method !== 'string') {
      this._settle(message);
    } else if (id !== undefined) {
      // Of a host's requests, `ping` and `ui/resource-teardown` expect an empty result.
      this._send({ id, result: {} });
    } else if (method === 'ui/notifications/tool-input') {
      const args = isRecord(params.arguments) ? params.arguments : {};
      this._setCall({ tool: this._tool, arguments: args });
    } else if (method === 'ui/notifications/tool-result') {
      this._setResult(params as unknown as IToolResult);
    } else if (method === 'ui/notifications/tool-cancelled') {
      this._setResult(null);
    } else if (method === 'ui/notifications/host-context-changed') {
      this._adopt(params);
    }
  }

  private _settle({ id, result, error }: Record<string, unknown>): void {
    const pending = this._pending.get(Number(id));
    this._pending.delete(Number(id));
    if (isRecord(error)) {
      pending?.reject(new Error(String(error.message)));
    } else {
      pending?.resolve(result);
    }
  }

  /** Take over what a host says about itself: its theme, its colours, and the tool. */
  private _adopt(context: unknown): void {
    if (!isRecord(context)) {
      return;
    }
    const { style } = document.documentElement;
    if (context.theme === 'light' || context.theme === 'dark') {
      style.colorScheme = context.theme;
    }
    const styles = isRecord(context.styles) ? context.styles : {};
    const variables = isRecord(styles.variables) ? styles.variables : {};
    for (const [name, value] of Object.entries(variables)) {
      if (typeof value === 'string') {
        style.setProperty(name, value);
      }
    }
    const info = isRecord(context.toolInfo) ? context.toolInfo : {};
    if (isRecord(info.tool)) {
      this._tool = String(info.tool.name);
    }
  }

  // Set above; a field without `declare` would be reset here.
  declare private _setCall: (call: ICall) => void;
  declare private _setResult: (result: IToolResult | null) => void;
  private _tool = '';
  private _lastId = 0;
  private readonly _pending = new Map<number, IPending>();
}
