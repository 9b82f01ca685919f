// A small server on the TypeScript SDK 2, over stdio, for the tests: two tools, a resource, a
// prompt. The SDK answers whichever era the client opens with.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const says = (text) => ({ content: [{ type: 'text', text }] });

function makeServer() {
  const server = new McpServer({ name: 'ts2-peer', version: '1.0.0' });

  const echo = { description: 'Gives back the text.', inputSchema: z.object({ text: z.string() }) };
  server.registerTool('echo', echo, ({ text }) => says(text));

  const add = { description: 'Adds two numbers.', inputSchema: z.object({ a: z.number(), b: z.number() }) };
  server.registerTool('add', add, ({ a, b }) => says(String(a + b)));

  server.registerResource('hello', 'note://hello', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello from the quay.' }],
  }));

  const greet = { description: 'Greets somebody.', argsSchema: z.object({ name: z.string() }) };
  server.registerPrompt('greet', greet, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Please greet ${name}.` } }],
  }));

  return server;
}

serveStdio(makeServer);
