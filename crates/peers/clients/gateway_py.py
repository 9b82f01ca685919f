"""A client on the Python SDK 1 or 2 that uses a gateway as programs do: lists, calls, answers a form, and calls again
after a line on its input. The SDK is that of the interpreter.

Usage: gateway_py.py stdio COMMAND ARGUMENT..., or gateway_py.py http URL TOKEN
"""

import json
import os
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

MODERN = version("mcp").startswith("2.")


async def accept(_context, _params):
    return types.ElicitResult(action="accept", content={"text": "ahoy"})


async def connect(stack, way, words):
    """Gives the client and the revision that was agreed on."""
    if way == "stdio":
        parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    headers = {"Authorization": f"Bearer {words[1]}"} if way == "http" else {}
    if MODERN:
        import httpx2
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        if way == "http":
            # The default of this library is too short for a form.
            http_client = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            server = streamable_http_client(words[0], http_client=http_client)
        else:
            server = parameters
        client = await stack.enter_async_context(Client(server, elicitation_callback=accept))
        return client, str(client.session.protocol_version)
    if way == "http":
        from mcp.client.streamable_http import streamablehttp_client

        streams = await stack.enter_async_context(streamablehttp_client(words[0], headers=headers))
    else:
        streams = await stack.enter_async_context(stdio_client(parameters))
    session = ClientSession(streams[0], streams[1], elicitation_callback=accept)
    client = await stack.enter_async_context(session)
    opened = await client.initialize()
    return client, str(opened.protocolVersion)


async def main():
    way, *words = sys.argv[1:]
    async with AsyncExitStack() as stack:
        client, revision = await connect(stack, way, words)

        async def call(name):
            result = await client.call_tool(name, {"text": "ahoy"})
            return result.content[0].text

        tools = [tool.name for tool in (await client.list_tools()).tools]
        seen = {"revision": revision, "tools": tools, "call": await call("s0__note"), "form": await call("s0__ask")}
        print(json.dumps(seen), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        print(json.dumps({"again": await call("s0__note")}), flush=True)


anyio.run(main)
