// A small server on the TypeScript SDK 2, for the tests: something of everything that a client has to
// support. The SDK answers whichever era the client opens with, and turns the questions of the tools
// into `input_required` results or into requests accordingly. It is reached over stdio, and with `--http`
// over Streamable HTTP, where a server is made for each request of the stateless era.
//
// The SDK has no tasks and no way to divide a list into pages.

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { McpServer, ResourceTemplate, completable, createRequestStateCodec } from '@modelcontextprotocol/server';
import { acceptedContent, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { listen, sessions } from './listening.mjs';

const COUNTER = 'note://counter';
const DUES = 'https://example.org/dues?ship=7';
const NAMES = ['Ada', 'Alan', 'Grace'];
const PORTS = ['genoa', 'ghent', 'riga'];
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const ICON = { src: 'data:image/svg+xml;base64,PHN2Zy8+', mimeType: 'image/svg+xml', sizes: ['any'], theme: 'light' };
const PUBLIC = { ttlMs: 60000, cacheScope: 'public' };
const PRIVATE = { ttlMs: 5000, cacheScope: 'private' };

const BERTH = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Ship', description: 'What she is called.', minLength: 1, maxLength: 40 },
    email: { type: 'string', format: 'email', default: 'master@example.org' },
    arrival: { type: 'string', format: 'date' },
    berth: { type: 'integer', minimum: 1, maximum: 12, default: 3 },
    draught: { type: 'number', minimum: 0.5, default: 2.5 },
    insured: { type: 'boolean', default: true },
    flag: { type: 'string', enum: ['it', 'nl', 'lv'], default: 'nl' },
    tide: { type: 'string', oneOf: titled({ high: 'High water', low: 'Low water' }), default: 'high' },
    cargo: { type: 'array', items: { type: 'string', enum: ['salt', 'rope', 'tea'] }, maxItems: 2, default: ['salt'] },
    crew: { type: 'array', items: { anyOf: titled({ cook: 'A cook', pilot: 'A pilot' }) }, minItems: 1 },
  },
  required: ['name'],
};

const state = createRequestStateCodec({ key: randomBytes(32) });
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

function makeServer({ era }) {
  const info = { name: 'ts2-peer', title: 'Quay', version: '1.0.0', websiteUrl: 'https://example.org', icons: [ICON] };
  const server = new McpServer(info, {
    instructions: 'Ask the harbour master.',
    capabilities: { logging: {}, resources: { subscribe: true } },
    cacheHints: { 'server/discover': PUBLIC, 'tools/list': PUBLIC, 'prompts/list': PUBLIC, 'resources/list': PRIVATE },
    requestState: { verify: state.verify },
  });
  simple(server);
  questions(server);
  work(server);
  changes(server, audienceOf(server, era));
  reading(server);
  return server;
}

function simple(server) {
  const echo = {
    title: 'Echo',
    description: 'Gives back the text.',
    inputSchema: z.object({ text: z.string() }),
    annotations: { readOnlyHint: true, openWorldHint: false },
    icons: [ICON],
  };
  server.registerTool('echo', echo, ({ text }) => says(text));

  const add = { description: 'Adds two numbers.', inputSchema: z.object({ a: z.number(), b: z.number() }) };
  server.registerTool('add', add, ({ a, b }) => says(String(a + b)));
}

/** Tools that need something of the client: a retry of the call brings the answers. */
function questions(server) {
  const form = { description: 'Asks for a form to be filled in.', inputSchema: z.object({}) };
  server.registerTool('ask_form', form, (_, { mcpReq }) => {
    const question = inputRequired.elicit({ message: 'Which ship, and where to?', requestedSchema: BERTH });
    return answered(mcpReq, 'form') ?? inputRequired({ inputRequests: { form: question } });
  });

  const url = { description: 'Asks for a page to be visited.', inputSchema: z.object({}) };
  server.registerTool('ask_url', url, (_, { mcpReq }) => {
    const question = inputRequired.elicitUrl({ message: 'Pay the harbour dues.', url: DUES });
    return answered(mcpReq, 'page') ?? inputRequired({ inputRequests: { page: question } });
  });

  const twice = { description: 'Asks two things, one after the other.', inputSchema: z.object({}) };
  server.registerTool('ask_twice', twice, async (_, { mcpReq }) => {
    const first = mcpReq.requestState()?.name ?? said(mcpReq, 'name');
    if (first === undefined) return inputRequired({ inputRequests: { name: asksFor('name') } });
    const second = said(mcpReq, 'port');
    if (second !== undefined) return says(`${first} sails to ${second}.`);
    return inputRequired({ inputRequests: { port: asksFor('port') }, requestState: await state.mint({ name: first }) });
  });

  const forever = { description: 'Is never content with an answer.', inputSchema: z.object({}) };
  server.registerTool('ask_forever', forever, () => inputRequired({ inputRequests: { name: asksFor('name') } }));

  const all = { description: 'Asks for a form, the model and the roots at once.', inputSchema: z.object({}) };
  server.registerTool('ask_all', all, (_, { mcpReq: { inputResponses: got } }) => {
    const model = inputRequired.createMessage(prompt());
    const inputRequests = { name: asksFor('name'), model, roots: inputRequired.listRoots() };
    return got === undefined ? inputRequired({ inputRequests }) : shows(got);
  });

  const offer = z.object({ tools: z.boolean().default(false) });
  const model = { description: 'Asks the model, which may have a tool.', inputSchema: offer };
  server.registerTool('ask_model', model, ({ tools }, { mcpReq }) => askModel(tools, mcpReq));

  const roots = { description: 'Lists the roots of the client.', inputSchema: z.object({}) };
  server.registerTool('show_roots', roots, (_, { mcpReq }) => {
    const got = inputResponse(mcpReq.inputResponses, 'roots');
    if (got.kind === 'roots') return shows(got.roots);
    return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
  });
}

function asksFor(field) {
  const requestedSchema = { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] };
  return inputRequired.elicit({ message: `Which ${field}?`, requestedSchema });
}

/** What was filled in, `nothing` if somebody would not, and undefined if nobody was asked. */
function said(mcpReq, field) {
  const asked = inputResponse(mcpReq.inputResponses, field).kind === 'elicit';
  return acceptedContent(mcpReq.inputResponses, field)?.[field] ?? (asked ? 'nothing' : undefined);
}

function answered(mcpReq, key) {
  const { kind, ...answer } = inputResponse(mcpReq.inputResponses, key);
  return kind === 'elicit' ? shows(answer) : undefined;
}

function prompt(messages = [{ role: 'user', content: { type: 'text', text: 'When is high water?' } }]) {
  return {
    messages,
    systemPrompt: 'Answer in one word.',
    maxTokens: 50,
    temperature: 0.2,
    stopSequences: ['.'],
    modelPreferences: { hints: [{ name: 'small' }], costPriority: 0.9 },
  };
}

/** Runs the tools that the model asks for, and says what it said at last. */
async function askModel(tools, mcpReq) {
  const asked = (mcpReq.requestState() ?? prompt()).messages;
  const got = inputResponse(mcpReq.inputResponses, 'model');
  const uses = got.kind === 'sampling' ? [got.result.content].flat().filter(({ type }) => type === 'tool_use') : [];
  if (got.kind === 'sampling' && uses.length === 0) return shows(got.result);
  const noon = [{ type: 'text', text: 'at noon' }];
  const results = uses.map(({ id }) => ({ type: 'tool_result', toolUseId: id, content: noon }));
  const turn = [{ role: 'assistant', content: uses }, { role: 'user', content: results }];
  const messages = uses.length === 0 ? asked : [...asked, ...turn];
  const place = { type: 'object', properties: { port: { type: 'string' } } };
  const tide = { name: 'tide', description: 'Says when.', inputSchema: place };
  const more = tools ? { tools: [tide], toolChoice: { mode: 'auto' } } : {};
  const question = inputRequired.createMessage({ ...prompt(messages), ...more });
  return inputRequired({ inputRequests: { model: question }, requestState: await state.mint({ messages }) });
}

function work(server) {
  const log = { description: 'Logs a message.', inputSchema: z.object({ level: z.enum(LEVELS), message: z.string() }) };
  server.registerTool('log', log, async ({ level, message }, { mcpReq }) => {
    await mcpReq.log(level, { message }, 'quay');
    return says('logged');
  });

  const pace = z.object({ steps: z.number().int(), wait_ms: z.number().default(20) });
  const slow = { description: 'Takes its time.', inputSchema: pace };
  server.registerTool('slow', slow, async ({ steps, wait_ms }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress++) {
      await wait(wait_ms, undefined, { signal: mcpReq.signal }).catch(stopped);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: steps, message: `step ${progress}` };
      await mcpReq.notify({ method: 'notifications/progress', params });
    }
    return says(`${steps} steps`);
  });

  const leave = { description: 'Ends the connection.', inputSchema: z.object({}) };
  server.registerTool('leave', leave, () => {
    setImmediate(() => handle.close());
    return says('farewell');
  });
}

let counter = 0;
let grown = 0;

function changes(server, audience) {
  server.registerResource('counter', COUNTER, { mimeType: 'text/plain', cacheHint: PRIVATE }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: String(counter) }],
  }));

  const touch = { description: 'Changes the counter.', inputSchema: z.object({}) };
  server.registerTool('touch', touch, async () => {
    counter += 1;
    await audience.touched(COUNTER);
    return says(String(counter));
  });

  const added = (name) => {
    server.registerTool(name, { description: 'Was not there before.', inputSchema: z.object({}) }, () => says(name));
  };
  for (let number = 1; number <= grown; number++) added(`grown_${number}`);
  const grow = { description: 'Adds a tool.', inputSchema: z.object({}) };
  server.registerTool('grow', grow, () => {
    const name = `grown_${(grown += 1)}`;
    audience.grown(() => added(name));
    return says(name);
  });
}

/** Who is told of changes: over stdio the SDK knows in the stateless era, and drops what nobody wants. */
function audienceOf(server, era) {
  const touched = (uri) => server.server.sendResourceUpdated({ uri });
  // The SDK tells of a tool that is added to a server with a client.
  if (era === 'modern' && handle?.notify === undefined) return { touched, grown: (add) => add() };
  // Whoever listens over HTTP does so on a server of their own.
  const { resourceUpdated, toolsChanged } = handle?.notify ?? {};
  if (era === 'modern') return { touched: resourceUpdated, grown: toolsChanged };
  const wanted = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => (wanted.add(params.uri), {}));
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (wanted.delete(params.uri), {}));
  return { touched: (uri) => wanted.has(uri) && touched(uri), grown: (add) => add() };
}

function reading(server) {
  server.registerResource('hello', 'note://hello', { mimeType: 'text/plain', icons: [ICON] }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello from the quay.' }],
  }));

  const template = new ResourceTemplate('port://{name}', { list: undefined, complete: { name: starting(PORTS) } });
  server.registerResource('port', template, { mimeType: 'text/plain' }, (uri, { name }) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `The port of ${name}.` }],
  }));

  server.registerResource('sealed', 'note://sealed', { mimeType: 'text/plain' }, (uri, { mcpReq }) => {
    const name = said(mcpReq, 'name');
    if (name === undefined) return inputRequired({ inputRequests: { name: asksFor('name') } });
    return { contents: [{ uri: uri.href, mimeType: 'text/plain', text: `For the eyes of ${name}.` }] };
  });

  const messages = (text) => ({ messages: [{ role: 'user', content: { type: 'text', text } }] });
  const argsSchema = z.object({ name: completable(z.string(), starting(NAMES)) });
  const greet = { description: 'Greets somebody.', argsSchema, icons: [ICON] };
  server.registerPrompt('greet', greet, ({ name }) => messages(`Please greet ${name}.`));

  server.registerPrompt('introduce', { description: 'Asks whom to introduce.' }, ({ mcpReq }) => {
    const name = said(mcpReq, 'name');
    if (name === undefined) return inputRequired({ inputRequests: { name: asksFor('name') } });
    return messages(`Please introduce ${name}.`);
  });
}

/** Gives the stateless era to the SDK's handler, and the handshake era sessions. */
function overHttp() {
  const modern = createMcpHandler(makeServer, { legacy: 'reject' });
  const [handleModern, handleLegacy] = [toNodeHandler(modern), sessions(openSession)];
  listen('/mcp', async (request, response) => {
    const sent = Buffer.concat(await request.toArray());
    const body = sent.length === 0 ? undefined : JSON.parse(sent);
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
    await (isLegacy ? handleLegacy : handleModern)(request, response, body);
  });
  return modern;
}

async function openSession({ known, gone }) {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => known(id, transport),
    onsessionclosed: gone,
  });
  await makeServer({ era: 'legacy' }).connect(transport);
  return transport;
}

const handle = process.argv.includes('--http') ? overHttp() : serveStdio(makeServer);
