// Stands in for Microsoft's Jupyter extension in tests, because only Microsoft's Marketplace and
// Open VSX have that one, and neither serves a program that tests may install without a network.
//
// It sends what that extension sends (`@jupyterlab/services`, a session with a random suffix, the
// code that names the notebook, the URI of the cell as `cellId`, `allow_stdin`), and shows what that
// extension shows: outputs of a cell also after its end, updates of displays, and an input box.

const { randomUUID } = require('node:crypto');
const path = require('node:path');

const { KernelManager, ServerConnection, SessionManager } = require('@jupyterlab/services');
const vscode = require('vscode');

// In the order of preference, other types before them, as Microsoft's extension sorts them.
const MIME_TYPES = [
  'text/html',
  'image/svg+xml',
  'image/png',
  'image/jpeg',
  'text/markdown',
  'text/latex',
  'text/plain'
];

exports.activate = context => {
  const controller = vscode.notebooks.createNotebookController(
    'kernel-stand-in',
    'jupyter-notebook',
    'Python 3'
  );
  controller.supportedLanguages = ['python'];
  controller.supportsExecutionOrder = true;
  const kernels = new Map();
  const kernelOf = notebook => {
    const key = notebook.uri.toString();
    if (!kernels.has(key)) {
      kernels.set(key, startKernel(notebook));
    }
    return kernels.get(key);
  };
  controller.executeHandler = async (cells, notebook) => {
    const kernel = await kernelOf(notebook);
    for (const cell of cells) {
      await new CellRun(controller, kernel, cell).done;
    }
  };
  controller.interruptHandler = async notebook => (await kernelOf(notebook)).interrupt();
  const prefer = notebook =>
    controller.updateNotebookAffinity(notebook, vscode.NotebookControllerAffinity.Preferred);
  vscode.workspace.notebookDocuments.forEach(prefer);
  // Before, VS Code does not know yet that .ipynb files are notebooks.
  const ready = vscode.window.createStatusBarItem();
  ready.text = 'Kernels are ready';
  ready.show();
  context.subscriptions.push(controller, ready, vscode.workspace.onDidOpenNotebookDocument(prefer));
};

async function startKernel(notebook) {
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: process.env.STAND_IN_URL,
    wsUrl: process.env.STAND_IN_URL.replace(/^http/, 'ws'),
    token: process.env.STAND_IN_TOKEN,
    appendToken: true
  });
  const kernelManager = new KernelManager({ serverSettings });
  const manager = new SessionManager({ kernelManager, serverSettings });
  const name = path.basename(notebook.uri.fsPath, '.ipynb');
  const session = await manager.startNew({
    path: `${name}-jvsc-${randomUUID()}${randomUUID()}.ipynb`,
    name: `${name}-${randomUUID()}.ipynb`,
    type: 'notebook',
    kernel: { name: 'python3' }
  });
  const code = `__vsc_ipynb_file__ = ${JSON.stringify(notebook.uri.fsPath)}`;
  await session.kernel.requestExecute({ code, store_history: false }).done;
  return session.kernel;
}

class CellRun {
  constructor(controller, kernel, cell) {
    this._controller = controller;
    this._kernel = kernel;
    this._cell = cell;
    this._displays = new Map();
    this._changes = Promise.resolve();
    this._clearLater = false;
    this._execution = controller.createNotebookCellExecution(cell);
    this._execution.start(Date.now());
    this._execution.clearOutput();
    const request = kernel.requestExecute(
      { code: cell.document.getText(), stop_on_error: false, allow_stdin: true },
      false,
      { cellId: cell.document.uri.toString() }
    );
    kernel.iopubMessage.connect((_, message) => {
      if (message.parent_header.msg_id === request.msg.header.msg_id) {
        this._changes = this._changes.then(() => this._show(message));
      }
    });
    request.onStdin = message => void this._ask(message);
    this.done = request.done.then(async reply => {
      await this._changes;
      this._execution.end(reply.content.status === 'ok', Date.now());
      this._execution = null;
    });
  }

  async _ask({ header, content }) {
    const options = { prompt: content.prompt, password: content.password, ignoreFocusOut: true };
    const value = (await vscode.window.showInputBox(options)) ?? '';
    this._kernel.sendInputReply({ status: 'ok', value }, header);
  }

  // An output can arrive after the end of its cell, from a thread.
  async _change(change) {
    if (this._execution) {
      return change(this._execution);
    }
    const { executionOrder, success, timing } = this._cell.executionSummary ?? {};
    const execution = this._controller.createNotebookCellExecution(this._cell);
    execution.executionOrder = executionOrder;
    execution.start(timing?.startTime);
    await change(execution);
    execution.end(success, timing?.endTime);
  }

  async _show({ header, content }) {
    switch (header.msg_type) {
      case 'execute_input':
        this._execution.executionOrder = content.execution_count;
        break;
      case 'stream': {
        const item = vscode.NotebookCellOutputItem[content.name](content.text);
        return this._append(new vscode.NotebookCellOutput([item]));
      }
      case 'error': {
        const { ename, evalue, traceback } = content;
        const error = { name: ename, message: evalue, stack: traceback.join('\n') };
        const item = vscode.NotebookCellOutputItem.error(error);
        return this._append(new vscode.NotebookCellOutput([item]));
      }
      case 'display_data':
      case 'execute_result': {
        const output = new vscode.NotebookCellOutput(items(content.data));
        if (content.transient?.display_id) {
          this._displays.set(content.transient.display_id, output);
        }
        return this._append(output);
      }
      case 'update_display_data': {
        const output = this._displays.get(content.transient.display_id);
        if (output) {
          await this._change(each => each.replaceOutputItems(items(content.data), output));
        }
        break;
      }
      case 'clear_output':
        this._clearLater = content.wait;
        if (!content.wait) {
          await this._change(each => each.clearOutput());
        }
    }
  }

  async _append(output) {
    const isFirst = this._clearLater;
    this._clearLater = false;
    await this._change(each => (isFirst ? each.replaceOutput(output) : each.appendOutput(output)));
  }
}

function items(data) {
  const rank = type => MIME_TYPES.indexOf(type);
  return Object.keys(data)
    .sort((a, b) => rank(a) - rank(b))
    .map(type => {
      const value = Array.isArray(data[type]) ? data[type].join('') : data[type];
      if (typeof value !== 'string') {
        return vscode.NotebookCellOutputItem.json(value, type);
      }
      const isBinary = type.startsWith('image/') && type !== 'image/svg+xml';
      return new vscode.NotebookCellOutputItem(
        Buffer.from(value, isBinary ? 'base64' : 'utf8'),
        type
      );
    });
}
