#!/usr/bin/env python3
"""A server with one tool and nothing but the standard library: `wharf tools --stdio "python3 tides.py"`."""
import json
import sys

TOOL = {"name": "next_high", "description": "Says when the tide is next high at a port.",
        "inputSchema": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}}

def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "tides", "version": "1.0"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"high water at {params['arguments']['port']}: 14:32"}]}
    return {} if method == "ping" else None

for message in map(json.loads, sys.stdin):
    if "id" in message:
        result = answer(message["method"], message.get("params"))
        told = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)
