"""The Python SDK 2 client, measured against the echo server: over stdio, and with `--answers` over HTTP.

Takes the flags of the other benchmark clients and prints the same line of JSON.
"""

import argparse
import json
from itertools import count
from subprocess import PIPE, Popen
from time import perf_counter, process_time

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

WARM_UP = 0.2


def read_flags():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--conc", type=int, default=1)
    parser.add_argument("--secs", type=float, default=1.0)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--answers")
    parser.add_argument("--rt")
    return parser.parse_args()


def after(seconds):
    end = perf_counter() + seconds
    return lambda now: now >= end


def after_calls(limit):
    begun = count()
    return lambda _now: next(begun) >= limit


async def one_caller(client, text, finished, latencies):
    """Calls until `finished`, told when the next call would begin, says so."""
    begun = perf_counter()
    while not finished(begun):
        await client.call_tool("echo", {"text": text})
        answered = perf_counter()
        latencies.append(answered - begun)
        begun = answered


async def all_callers(client, flags, finished):
    latencies = []
    text = "x" * flags.payload
    async with anyio.create_task_group() as callers:
        for _ in range(flags.conc):
            callers.start_soon(one_caller, client, text, finished, latencies)
    return sorted(latencies)


class WebServer:
    """The echo server over HTTP."""

    def __init__(self, flags):
        self.child = Popen([flags.server, "--answers", flags.answers], stdin=PIPE, stdout=PIPE, text=True)
        self.url = self.word("listening ")

    def word(self, before):
        return self.child.stdout.readline().removeprefix(before).strip()

    def stop(self):
        """Gives how many connections it saw opened."""
        self.child.stdin.close()
        return int(self.word("connections "))


async def main():
    flags = read_flags()
    web = WebServer(flags) if flags.answers else None
    async with Client(web.url if web else StdioServerParameters(command=flags.server)) as client:
        if not flags.calls:
            await all_callers(client, flags, after(WARM_UP))
        processor, start = process_time(), perf_counter()
        finished = after_calls(flags.calls) if flags.calls else after(flags.secs)
        latencies = await all_callers(client, flags, finished)
        wall, processor = perf_counter() - start, process_time() - processor
    n = len(latencies)

    def quantile(percent):
        return round(latencies[(n - 1) * percent // 100] * 1e6, 2)

    report = {
        "impl": "py2",
        "rt": "asyncio",
        "payload": flags.payload,
        "conc": flags.conc,
        "n": n,
        "wall_s": round(wall, 4),
        "rps": round(n / wall, 1),
        "p50_us": quantile(50),
        "p99_us": quantile(99),
        "cpu_us_per_call": round(processor * 1e6 / n, 3),
    }
    if web:
        report["connections"] = web.stop()
    print(json.dumps(report), flush=True)


anyio.run(main)
