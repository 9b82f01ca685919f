// A protected server for the tests: its authorization server is `oidc-provider`, its MCP side the TypeScript
// SDK 2. Both listen on free ports of the loopback interface.
//
// It says where it is, and then on its standard output what it grants and refuses. Refresh tokens are used once;
// access tokens last ten minutes, or until its standard input says `expire`. Leaves when that ends.

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';
import * as z from 'zod';

const SCOPES = ['mcp:read', 'mcp:write'];
const TTL = 600;

const tell = (what) => console.log(what);
const listen = (server) =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(`http://localhost:${server.address().port}`)));

/** Two listeners whose addresses are known before what they serve is made. */
const guard = createServer();
const desk = createServer();
const [issuer, origin] = [await listen(desk), await listen(guard)];
const resource = `${origin}/mcp`;

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', ...SCOPES],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { AccessToken: TTL, Interaction: 600, Session: 600, Grant: 3600, RefreshToken: 3600 },
  clientDefaults: { token_endpoint_auth_method: 'none' },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new Error(`no such resource: ${indicator}`);
        return { scope: SCOPES.join(' '), accessTokenTTL: TTL, accessTokenFormat: 'opaque' };
      },
    },
  },
});
provider.on('grant.success', (ctx) => tell(`granted ${ctx.oidc.params.grant_type} ${ctx.oidc.client.clientId}`));
provider.on('grant.error', (ctx, error) => tell(`refused ${ctx.oidc?.params?.grant_type} ${error.message}`));
provider.on('grant.revoked', () => tell('revoked'));
provider.on('refresh_token.destroyed', () => tell('refresh token destroyed'));
desk.on('request', provider.callback());

function makeServer() {
  const server = new McpServer({ name: 'guarded-quay', version: '1.0.0' });
  const text = { inputSchema: z.object({ text: z.string() }) };
  const says = ({ text }) => ({ content: [{ type: 'text', text }] });
  server.registerTool('read', { description: 'Gives back the text.', ...text }, says);
  server.registerTool('write', { description: 'Gives it back to those who may write.', ...text }, says);
  return server;
}

/** The access tokens that were shown, and those of them that have ended before their time. */
const [seen, expired] = [new Set(), new Set()];

const serve = toNodeHandler(createMcpHandler(makeServer));
const description = `${origin}/.well-known/oauth-protected-resource/mcp`;

guard.on('request', async (request, response) => {
  if (request.url.startsWith('/.well-known/oauth-protected-resource')) {
    response.writeHead(200, { 'content-type': 'application/json' });
    const known = { resource, authorization_servers: [issuer], scopes_supported: ['mcp:read'] };
    return response.end(JSON.stringify(known));
  }
  const sent = Buffer.concat(await request.toArray());
  const body = sent.length === 0 ? undefined : JSON.parse(sent);
  const token = request.headers.authorization?.match(/^Bearer (.+)$/)?.[1];
  const found = token && (await provider.AccessToken.find(token));
  if (!found || found.isExpired || expired.has(found.jti) || found.aud !== resource) return turnAway(response, 401, { scope: 'mcp:read' });
  const needs = body?.params?.name === 'write' ? 'mcp:write' : 'mcp:read';
  if (!found.scopes.has(needs)) return turnAway(response, 403, { error: 'insufficient_scope', scope: needs });
  seen.add(found.jti);
  tell(`served ${body?.method} ${body?.params?.name ?? ''}`.trim());
  await serve(request, response, body);
});

function turnAway(response, status, challenge) {
  const words = Object.entries({ ...challenge, resource_metadata: description });
  const header = `Bearer ${words.map(([name, value]) => `${name}="${value}"`).join(', ')}`;
  tell(`turned away ${status}`);
  response.writeHead(status, { 'www-authenticate': header, 'content-type': 'application/json' }).end('{}');
}

tell(`listening ${resource} ${issuer}`);
createInterface(process.stdin)
  .on('line', (line) => {
    if (line !== 'expire') return;
    for (const token of seen) expired.add(token);
    tell('expired');
  })
  .on('close', () => process.exit(0));
