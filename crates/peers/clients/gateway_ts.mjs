// A client on the TypeScript SDK 1 or 2 that uses a gateway as programs do: lists, calls, answers a form, and calls
// again after a line on its input.
//
// Usage: gateway_ts.mjs 1|2 stdio COMMAND ARGUMENT..., or gateway_ts.mjs 1|2 http URL TOKEN

import { createInterface } from 'node:readline';

const [sdk, way, ...words] = process.argv.slice(2);
const modern = sdk === '2';
const base = '@modelcontextprotocol';
const info = { name: `ts${sdk}`, version: '1.0.0' };
const capabilities = { elicitation: { form: {} } };
const accept = () => ({ action: 'accept', content: { text: 'ahoy' } });

async function makeClient() {
  if (modern) {
    const { Client } = await import(`${base}/client`);
    const client = new Client(info, { capabilities, versionNegotiation: { mode: 'auto' } });
    client.setRequestHandler('elicitation/create', accept);
    return client;
  }
  const { Client } = await import(`${base}/sdk/client/index.js`);
  const { ElicitRequestSchema } = await import(`${base}/sdk/types.js`);
  const client = new Client(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, accept);
  return client;
}

async function makeTransport() {
  if (way === 'stdio') {
    const [command, ...args] = words;
    const { StdioClientTransport } = await import(modern ? `${base}/client/stdio` : `${base}/sdk/client/stdio.js`);
    return new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
  }
  const path = modern ? `${base}/client` : `${base}/sdk/client/streamableHttp.js`;
  const { StreamableHTTPClientTransport } = await import(path);
  const [url, token] = words;
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit });
}

const client = await makeClient();
await client.connect(await makeTransport());
const call = async (name) => {
  const result = await client.callTool({ name, arguments: { text: 'ahoy' } });
  return result.content[0].text;
};
const { tools } = await client.listTools();
// SDK 1 does not tell it on a pipe.
const revision = modern ? client.getNegotiatedProtocolVersion?.() : (client.transport.protocolVersion ?? 'handshake');
console.log(
  JSON.stringify({
    revision,
    tools: tools.map(({ name }) => name),
    call: await call('s0__note'),
    form: await call('s0__ask'),
  }),
);
for await (const _ of createInterface({ input: process.stdin })) break;
console.log(JSON.stringify({ again: await call('s0__note') }));
await client.close();
process.exit(0);
