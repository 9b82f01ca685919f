"""A small server on the Python SDK 2, over stdio, for the tests: two tools, a resource, a prompt."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("py2-peer", version="1.0.0", log_level="WARNING")


@server.tool(description="Gives back the text.", structured_output=False)
def echo(text: str) -> str:
    return text


@server.tool(description="Adds two numbers.", structured_output=False)
def add(a: float, b: float) -> str:
    return f"{a + b:g}"


@server.resource("note://hello", name="hello", mime_type="text/plain")
def hello() -> str:
    return "Hello from the quay."


@server.prompt(description="Greets somebody.")
def greet(name: str) -> str:
    return f"Please greet {name}."


if __name__ == "__main__":
    server.run("stdio")
