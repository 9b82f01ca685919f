#!/usr/bin/env node
// A server with one tool and nothing but what Node brings: `wharf tools --stdio "node berths.mjs"`.
import { createInterface } from "node:readline";

const tool = { name: "free_berths", description: "Says how many berths are free at a pier.",
  inputSchema: { type: "object", properties: { pier: { type: "integer", minimum: 1 } }, required: ["pier"] } };

const answers = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities: { tools: {} },
    serverInfo: { name: "berths", version: "1.0" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { pier } }) => ({ content: [{ type: "text", text: `pier ${pier}: ${(pier * 7) % 5} free` }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const told = answers[method] ? { result: answers[method](params) } : { error: { code: -32601, message: "no such method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...told }));
});
