// An agent of the official SDK that speaks only version 2 of the protocol.

import { Readable, Writable } from 'node:stream';

import * as acp from '@agentclientprotocol/sdk/experimental/v2';

const sessionId = 'sdk';

async function turn(client, text) {
  const update = update => client.notify('session/update', { sessionId, update });
  await update({ sessionUpdate: 'state_update', state: 'running' });
  const answer = await client.request('session/request_permission', {
    sessionId,
    title: 'Run it',
    subject: { type: 'command', command: text, cwd: '/' },
    options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
  });
  const content = { type: 'text', text: `${text}: ${answer.outcome.optionId}` };
  await update({ sessionUpdate: 'agent_message_chunk', messageId: 'm', content });
  await update({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'end_turn' });
}

acp
  .agent()
  .onRequest('initialize', () => ({
    protocolVersion: 2,
    info: { name: 'sdk', version: '1' },
    capabilities: { session: {} }
  }))
  .onRequest('session/new', () => ({ sessionId }))
  .onRequest('session/prompt', ({ params, client }) => {
    // After the response, which accepts the prompt.
    setImmediate(() => void turn(client, params.prompt[0].text));
    return { messageId: 'u' };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
