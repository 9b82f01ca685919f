// What the TypeScript servers share when they are reached over HTTP.

import { createServer } from 'node:http';

/**
 * Listens on a free port of the loopback interface, says where, and tells on its standard output of each
 * request that comes, with the revision it names and whether it names a session: a test can then see which there were.
 * Leaves when its standard input ends.
 */
export function listen(path, handle) {
  const server = createServer((request, response) => {
    const { 'mcp-protocol-version': revision, 'mcp-session-id': session } = request.headers;
    const named = [revision ?? 'no revision', session === undefined ? 'no session' : 'session'].join(', ');
    console.log(`${request.method} ${new URL(request.url, 'http://localhost').pathname}: ${named}`);
    Promise.resolve(handle(request, response)).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(0, '127.0.0.1', () => console.log(`listening http://127.0.0.1:${server.address().port}${path}`));
  // Streams that are open would keep the server from closing.
  process.stdin.on('end', () => process.exit(0)).resume();
}

/** Serves the handshake era by sessions: `open` connects a new server to a new transport, and tells of its life. */
export function sessions(open) {
  const transports = new Map();
  return async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    if (id !== undefined && !transports.has(id)) return refuse(response, 404, 'Session not found');
    const known = (session, transport) => transports.set(session, transport);
    const transport = transports.get(id) ?? (await open({ known, gone: (session) => transports.delete(session) }));
    await transport.handleRequest(request, response, body);
  };
}

function refuse(response, status, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }));
}
