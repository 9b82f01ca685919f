// The TypeScript SDK 2 client, measured against the echo server. Takes the flags of the other
// benchmark clients and prints the same line of JSON.

import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const WARM_UP_MS = 200;

const { values: flags } = parseArgs({
  options: {
    server: { type: 'string' },
    payload: { type: 'string', default: '64' },
    conc: { type: 'string', default: '1' },
    secs: { type: 'string', default: '1' },
    calls: { type: 'string' },
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
await client.connect(new StdioClientTransport({ command: flags.server }));

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
console.log(JSON.stringify(report));
await client.close();
