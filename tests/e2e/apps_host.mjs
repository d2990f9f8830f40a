// A host of MCP Apps, made of the official SDK: a client and a bridge to a sandboxed frame.

import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const TYPE = 'text/html;profile=mcp-app';
const INFO = { name: 'Reference host', version: '1' };
// What the specification wants where a page asks for no origins.
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; media-src 'self' data:; connect-src 'none'";

const client = new Client(INFO, {
  capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [TYPE] } } }
});
await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location)));
const { tools } = await client.listTools();

/** Return the tools that a model may call. */
window.modelTools = tools
  .filter(({ _meta }) => (_meta?.ui?.visibility ?? ['model']).includes('model'))
  .map(({ name }) => name);

/** Call a tool as a model does, without a view. */
window.call = (name, args) => client.callTool({ name, arguments: args });

/** Call a tool as a model does, with the view that it names beside it. */
window.show = async (name, args, theme = 'light') => {
  const tool = tools.find(each => each.name === name);
  const { contents } = await client.readResource({ uri: tool._meta.ui.resourceUri });
  const [page] = contents;
  if (page.mimeType !== TYPE) {
    throw new Error(`Not an app: ${page.mimeType}`);
  }
  const frame = document.createElement('iframe');
  frame.sandbox = 'allow-scripts';
  document.body.append(frame);
  const context = { theme, toolInfo: { tool }, displayMode: 'inline' };
  const bridge = new AppBridge(client, INFO, { serverTools: {} }, { hostContext: context });
  bridge.onsizechange = ({ height }) => {
    frame.style.height = `${height}px`;
  };
  bridge.onsizechanged = bridge.onsizechange;
  const ready = new Promise(resolve => (bridge.oninitialized = resolve));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  frame.srcdoc = page.text.replace('<head>', `<head>${policy}`);
  await ready;
  await bridge.sendToolInput({ arguments: args });
  window.outcome = client.callTool({ name, arguments: args }).then(async result => {
    await bridge.sendToolResult(result);
    return result;
  });
};
document.body.dataset.ready = 'yes';
