// A small server on the TypeScript SDK 1, for the tests: something of everything that a client of the
// handshake era has to support, with the tasks of 2025-11-25. It is reached over stdio, with `--http` over
// Streamable HTTP, and with `--sse` over the HTTP+SSE of 2024-11-05.
//
// The SDK has no icons on tools and prompts, no caching hints, and no way to divide a list into pages.

import { InMemoryTaskMessageQueue, InMemoryTaskStore, isTerminal } from '@modelcontextprotocol/sdk/experimental/tasks';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema, UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { listen, sessions } from './listening.mjs';

const COUNTER = 'note://counter';
const NAMES = ['Ada', 'Alan', 'Grace'];
const PORTS = ['genoa', 'ghent', 'riga'];
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const ICON = { src: 'data:image/svg+xml;base64,PHN2Zy8+', mimeType: 'image/svg+xml', sizes: ['any'], theme: 'light' };
const DUES = 'https://example.org/dues?ship=7';

const BERTH = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Ship', description: 'What she is called.', minLength: 1, maxLength: 40 },
    email: { type: 'string', format: 'email', default: 'master@example.org' },
    arrival: { type: 'string', format: 'date' },
    berth: { type: 'integer', minimum: 1, maximum: 12, default: 3 },
    draught: { type: 'number', minimum: 0.5, default: 2.5 },
    insured: { type: 'boolean', default: true },
    flag: { type: 'string', enum: ['it', 'nl', 'lv'], enumNames: ['Italy', 'Netherlands', 'Latvia'], default: 'nl' },
    tide: { type: 'string', oneOf: titled({ high: 'High water', low: 'Low water' }), default: 'high' },
    cargo: { type: 'array', items: { type: 'string', enum: ['salt', 'rope', 'tea'] }, maxItems: 2, default: ['salt'] },
    crew: { type: 'array', items: { anyOf: titled({ cook: 'A cook', pilot: 'A pilot' }) }, minItems: 1 },
  },
  required: ['name'],
};

const says = (text) => ({ content: [{ type: 'text', text }] });
const shows = (value) => says(JSON.stringify(value));
const starting = (words) => (start) => words.filter((word) => word.toLowerCase().startsWith(start.toLowerCase()));

/** Says, where a test can see it, that a call was withdrawn. */
function stopped(reason) {
  console.error('stopped');
  throw reason;
}

function titled(titles) {
  return Object.entries(titles).map(([value, title]) => ({ const: value, title }));
}

function makeServer() {
  const taskStore = new InMemoryTaskStore();
  const info = { name: 'ts1-peer', title: 'Quay', version: '1.0.0', websiteUrl: 'https://example.org', icons: [ICON] };
  const mcp = new McpServer(info, {
    instructions: 'Ask the harbour master.',
    capabilities: {
      logging: {},
      resources: { subscribe: true },
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    },
    taskStore,
    taskMessageQueue: new InMemoryTaskMessageQueue(),
  });
  const tool = (name, description, inputSchema, call) => mcp.registerTool(name, { description, inputSchema }, call);
  simple(mcp, tool);
  questions(mcp.server, tool);
  work(mcp, tool);
  tea(mcp, taskStore);
  changes(mcp, tool);
  reading(mcp);
  // Tasks are kept by timers.
  mcp.server.onclose = () => taskStore.cleanup();
  return mcp;
}

function simple(mcp, tool) {
  const echo = {
    title: 'Echo',
    description: 'Gives back the text.',
    inputSchema: { text: z.string() },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
  mcp.registerTool('echo', echo, ({ text }) => says(text));
  tool('add', 'Adds two numbers.', { a: z.number(), b: z.number() }, ({ a, b }) => says(String(a + b)));
}

/** Tools that ask something of the client while it waits for them. */
function questions(server, tool) {
  tool('ask_form', 'Asks for a form to be filled in.', {}, async () => {
    return shows(await server.elicitInput({ message: 'Which ship, and where to?', requestedSchema: BERTH }));
  });

  tool('ask_url', 'Asks for a page to be visited.', {}, async () => {
    const elicitationId = randomUUID();
    const answer = await server.elicitInput(asksForPage(elicitationId));
    if (answer.action === 'accept') await server.createElicitationCompletionNotifier(elicitationId)();
    return shows(answer);
  });

  const billed = new Set();
  tool('need_url', 'Refuses until a page was visited.', { ship: z.string() }, async ({ ship }) => {
    if (billed.has(ship)) return says(`${ship} has paid.`);
    billed.add(ship);
    const elicitationId = randomUUID();
    // The refusal has to be on its way first.
    setTimeout(() => server.createElicitationCompletionNotifier(elicitationId)(), 20);
    throw new UrlElicitationRequiredError([asksForPage(elicitationId)]);
  });

  tool('ask_twice', 'Asks two things, one after the other.', {}, async (_, { requestId }) => {
    // Over HTTP these come with the answer to the call, and the questions of the other tools on the stream beside it.
    const beside = { relatedRequestId: requestId };
    const { content: first } = await server.elicitInput(asksFor('name'), beside);
    const { content: second } = await server.elicitInput(asksFor('port'), beside);
    return says(`${first?.name} sails to ${second?.port}.`);
  });

  tool('ask_all', 'Asks for a form, the model and the roots at once.', {}, async () => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'When is high water?' } }];
    const asked = server.createMessage({ ...question, messages });
    const [name, model, roots] = await Promise.all([server.elicitInput(asksFor('name')), asked, server.listRoots()]);
    return shows({ name, model, roots });
  });

  const offer = { tools: z.boolean().default(false) };
  tool('ask_model', 'Asks the model, which may have a tool.', offer, async ({ tools }) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'When is high water?' } }];
    const more = tools ? { tools: [tide], toolChoice: { mode: 'auto' } } : {};
    for (;;) {
      const answer = await server.createMessage({ ...question, ...more, messages });
      const uses = [answer.content].flat().filter(({ type }) => type === 'tool_use');
      if (uses.length === 0) return shows(answer);
      const results = uses.map(({ id }) => ({ type: 'tool_result', toolUseId: id, content: noon }));
      messages.push({ role: 'assistant', content: uses }, { role: 'user', content: results });
    }
  });

  tool('show_roots', 'Lists the roots of the client.', {}, async () => shows((await server.listRoots()).roots));
}

function asksFor(field) {
  const requestedSchema = { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] };
  return { message: `Which ${field}?`, requestedSchema };
}

function asksForPage(elicitationId) {
  return { mode: 'url', message: 'Pay the harbour dues.', elicitationId, url: DUES };
}

const question = {
  systemPrompt: 'Answer in one word.',
  maxTokens: 50,
  temperature: 0.2,
  stopSequences: ['.'],
  includeContext: 'none',
  modelPreferences: { hints: [{ name: 'small' }], costPriority: 0.9 },
};
const place = { type: 'object', properties: { port: { type: 'string' } } };
const tide = { name: 'tide', description: 'Says when.', inputSchema: place };
const noon = [{ type: 'text', text: 'at noon' }];

function work(mcp, tool) {
  tool('log', 'Logs a message.', { level: z.enum(LEVELS), message: z.string() }, async ({ level, message }) => {
    await mcp.server.sendLoggingMessage({ level, data: { message }, logger: 'quay' });
    return says('logged');
  });

  const pace = { steps: z.number().int(), wait_ms: z.number().default(20) };
  tool('slow', 'Takes its time.', pace, async ({ steps, wait_ms }, { signal, _meta, sendNotification }) => {
    for (let progress = 1; progress <= steps; progress++) {
      await wait(wait_ms, undefined, { signal }).catch(stopped);
      if (_meta?.progressToken === undefined) continue;
      const params = { progressToken: _meta.progressToken, progress, total: steps, message: `step ${progress}` };
      await sendNotification({ method: 'notifications/progress', params });
    }
    return says(`${steps} steps`);
  });

  tool('leave', 'Ends the connection.', {}, () => {
    setImmediate(() => mcp.close());
    return says('farewell');
  });
}

/** Tools that may or must be called as tasks. */
function tea(mcp, taskStore) {
  const brewing = {
    createTask: async (wanted, { taskStore: store, taskRequestedTtl, sendRequest }) => {
      const task = await store.createTask({ ttl: taskRequestedTtl ?? 60000, pollInterval: 20 });
      const work = brew(wanted, { taskId: task.taskId, taskStore, sendRequest });
      work.catch(() => store.updateTaskStatus(task.taskId, 'failed', 'spilt'));
      return { task };
    },
    getTask: (_, { taskId, taskStore: store }) => store.getTask(taskId),
    getTaskResult: (_, { taskId, taskStore: store }) => store.getTaskResult(taskId),
  };
  for (const [name, taskSupport] of [['brew', 'optional'], ['brew_later', 'required']]) {
    const inputSchema = { steps: z.number().int().default(3), ask: z.boolean().default(false) };
    const config = { description: 'Makes tea.', inputSchema, execution: { taskSupport } };
    mcp.experimental.tasks.registerToolTask(name, config, brewing);
  }
}

async function brew({ steps, ask }, { taskId, taskStore, sendRequest }) {
  for (let step = 1; step <= steps; step++) {
    await wait(20);
    if (isTerminal((await taskStore.getTask(taskId)).status)) return;
    await taskStore.updateTaskStatus(taskId, 'working', `step ${step}`);
  }
  if (!ask) return await taskStore.storeTaskResult(taskId, 'completed', says('tea'));
  await taskStore.updateTaskStatus(taskId, 'input_required', 'milk?');
  const request = { method: 'elicitation/create', params: { mode: 'form', ...asksFor('milk') } };
  const answer = await sendRequest(request, ElicitResultSchema, { relatedTask: { taskId } });
  await taskStore.updateTaskStatus(taskId, 'working', 'pouring');
  await taskStore.storeTaskResult(taskId, 'completed', shows(answer));
}

/** What changes, and who is told. */
function changes(mcp, tool) {
  const { server } = mcp;
  const wanted = new Set();
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (wanted.add(params.uri), {}));
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (wanted.delete(params.uri), {}));

  let counter = 0;
  mcp.registerResource('counter', COUNTER, { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: String(counter) }],
  }));

  tool('touch', 'Changes the counter.', {}, async () => {
    counter += 1;
    if (wanted.has(COUNTER)) await server.sendResourceUpdated({ uri: COUNTER });
    return says(String(counter));
  });

  let grown = 0;
  tool('grow', 'Adds a tool.', {}, () => {
    const name = `grown_${(grown += 1)}`;
    tool(name, 'Was not there before.', {}, () => says(name));
    return says(name);
  });
}

function reading(mcp) {
  mcp.registerResource('hello', 'note://hello', { mimeType: 'text/plain', icons: [ICON] }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello from the quay.' }],
  }));

  const template = new ResourceTemplate('port://{name}', { list: undefined, complete: { name: starting(PORTS) } });
  mcp.registerResource('port', template, { mimeType: 'text/plain' }, (uri, { name }) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `The port of ${name}.` }],
  }));

  const greet = { description: 'Greets somebody.', argsSchema: { name: completable(z.string(), starting(NAMES)) } };
  mcp.registerPrompt('greet', greet, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Please greet ${name}.` } }],
  }));
}

async function overStdio() {
  const mcp = makeServer();
  // The SDK does not notice the end of its input.
  process.stdin.on('end', () => mcp.close());
  await mcp.connect(new StdioServerTransport());
}

async function openSession({ known, gone }) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => known(id, transport),
    onsessionclosed: gone,
  });
  await makeServer().connect(transport);
  return transport;
}

function overSse() {
  const transports = new Map();
  listen('/sse', async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (request.method === 'GET' && pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      transports.set(transport.sessionId, transport);
      response.on('close', () => transports.delete(transport.sessionId));
      return await makeServer().connect(transport);
    }
    const transport = transports.get(searchParams.get('sessionId'));
    if (request.method !== 'POST' || transport === undefined) return response.writeHead(404).end('Not found');
    await transport.handlePostMessage(request, response);
  });
}

if (process.argv.includes('--http')) listen('/mcp', sessions(openSession));
else if (process.argv.includes('--sse')) overSse();
else await overStdio();
