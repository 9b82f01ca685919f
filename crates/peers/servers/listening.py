"""What the Python servers share when they are reached over HTTP."""

import os
import socket
import sys
import threading
from contextlib import contextmanager

import anyio
import uvicorn


def serve(app, path):
    """Listens on a free port of the loopback interface and says where. Leaves when its standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=leave_with_stdin, daemon=True).start()
    say(f"listening http://127.0.0.1:{listener.getsockname()[1]}{path}")
    uvicorn.Server(uvicorn.Config(telling(app), log_level="error")).run(sockets=[listener])


def telling(app):
    """Tells on the standard output of each request that comes: a test can then see which there were."""

    async def tell(scope, receive, send):
        if scope["type"] == "http":
            say(f"{scope['method']} {scope['path']}")
        await app(scope, receive, send)

    return tell


def say(line):
    print(line, flush=True)


def leave_with_stdin():
    sys.stdin.buffer.read()
    # Streams that are open would keep the server from closing.
    os._exit(0)


@contextmanager
def tells_when_stopped():
    """Says, where a test can see it, that a call was withdrawn."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        print("stopped", file=sys.stderr, flush=True)
        raise
