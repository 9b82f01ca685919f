// The TypeScript SDK 2 client, measured against the echo server: over stdio, and with `--answers` over
// HTTP. Takes the flags of the other benchmark clients and prints the same line of JSON.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const WARM_UP_MS = 200;

const { values: flags } = parseArgs({
  options: {
    server: { type: 'string' },
    payload: { type: 'string', default: '64' },
    conc: { type: 'string', default: '1' },
    secs: { type: 'string', default: '1' },
    calls: { type: 'string' },
    answers: { type: 'string' },
    rt: { type: 'string' },
  },
});
const payload = Number(flags.payload);
const conc = Number(flags.conc);
const text = 'x'.repeat(payload);

const client = new Client(
  { name: 'bench-ts2', version: '1.0.0' },
  { versionNegotiation: { mode: 'auto' } },
);
const web = flags.answers && (await startWebServer());
const address = web && new URL(web.url);
const { server: command } = flags;
await client.connect(web ? new StreamableHTTPClientTransport(address) : new StdioClientTransport({ command }));

/** Starts the echo server over HTTP; stopping it gives how many connections it saw opened. */
async function startWebServer() {
  const child = spawn(flags.server, ['--answers', flags.answers], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const word = async (before) => (await lines.next()).value.slice(before.length);
  const stop = async () => (child.stdin.end(), Number(await word('connections ')));
  return { url: await word('listening '), stop };
}

/** Calls until `finished`, told when the next call would begin, says so. */
async function oneCaller(finished, latencies) {
  for (let begun = performance.now(); !finished(begun); ) {
    await client.callTool({ name: 'echo', arguments: { text } });
    const answered = performance.now();
    latencies.push(answered - begun);
    begun = answered;
  }
}

async function allCallers(finished) {
  const latencies = [];
  await Promise.all(Array.from({ length: conc }, () => oneCaller(finished, latencies)));
  return latencies;
}

function after(milliseconds) {
  const end = performance.now() + milliseconds;
  return (now) => now >= end;
}

function afterCalls(limit) {
  let begun = 0;
  return () => begun++ >= limit;
}

if (!flags.calls) await allCallers(after(WARM_UP_MS));
const processorBefore = process.cpuUsage();
const start = performance.now();
const latencies = await allCallers(flags.calls ? afterCalls(Number(flags.calls)) : after(1000 * Number(flags.secs)));
const wall = (performance.now() - start) / 1000;
const processor = process.cpuUsage(processorBefore);

latencies.sort((a, b) => a - b);
const n = latencies.length;
const quantile = (percent) => Number((1000 * latencies[Math.floor(((n - 1) * percent) / 100)]).toFixed(2));
const report = {
  impl: 'ts2',
  rt: 'node',
  payload,
  conc,
  n,
  wall_s: Number(wall.toFixed(4)),
  rps: Number((n / wall).toFixed(1)),
  p50_us: quantile(50),
  p99_us: quantile(99),
  cpu_us_per_call: Number(((processor.user + processor.system) / n).toFixed(3)),
};
await client.close();
if (web) report.connections = await web.stop();
console.log(JSON.stringify(report));
