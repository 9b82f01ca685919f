"""A small server on the Python SDK 1, for the tests: something of everything that a client of the handshake
era has to support, with pages and with the tasks of 2025-11-25. It is reached over stdio, with `--http` over
Streamable HTTP, and with `--sse` over the HTTP+SSE of 2024-11-05.

It uses the lower of the SDK's two interfaces, as the upper one has neither pages, subscriptions nor tasks.
The SDK has no caching hints, and reads its input in a thread that cannot be stopped: there is no way to leave.
"""

import json
import sys
from uuid import uuid4

import anyio
import mcp.types as t
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError, UrlElicitationRequiredError
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

from listening import serve, tells_when_stopped

COUNTER = "note://counter"
DUES = "https://example.org/dues?ship=7"
NAMES = ["Ada", "Alan", "Grace"]
PORTS = ["genoa", "ghent", "riga"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
ICON = t.Icon(src="data:image/svg+xml;base64,PHN2Zy8+", mimeType="image/svg+xml", sizes=["any"])
PAGE = 5

BERTH = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Ship", "minLength": 1, "maxLength": 40},
        "email": {"type": "string", "format": "email", "default": "master@example.org"},
        "arrival": {"type": "string", "format": "date"},
        "berth": {"type": "integer", "minimum": 1, "maximum": 12, "default": 3},
        "draught": {"type": "number", "minimum": 0.5, "default": 2.5},
        "insured": {"type": "boolean", "default": True},
        "flag": {"type": "string", "enum": ["it", "nl", "lv"], "default": "nl"},
        "tide": {"type": "string", "oneOf": [{"const": "high", "title": "High"}, {"const": "low", "title": "Low"}]},
        "cargo": {"type": "array", "items": {"type": "string", "enum": ["salt", "rope"]}, "default": ["salt"]},
        "crew": {"type": "array", "items": {"anyOf": [{"const": "cook", "title": "A cook"}]}, "minItems": 1},
    },
    "required": ["name"],
}
QUESTION = [t.SamplingMessage(role="user", content=t.TextContent(type="text", text="When is high water?"))]
TIDE = t.Tool(name="tide", description="Says when.", inputSchema={"type": "object", "properties": {}})


class Quay(Server):
    def create_initialization_options(self, *args, **more):
        options = super().create_initialization_options(NotificationOptions(tools_changed=True))
        # The SDK says no, whoever handles the requests.
        options.capabilities.resources.subscribe = True
        return options


server = Quay("py1-peer", version="1.0.0", instructions="Ask the harbour master.", icons=[ICON])
server.experimental.enable_tasks()

tools: dict[str, t.Tool] = {}
calls = {}
wanted: set[str] = set()
billed: set[str] = set()
counter = 0
threshold = "debug"


def tool(description, properties=None, required=(), task=None):
    """Registers a tool under the name of its function."""
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    execution = t.ToolExecution(taskSupport=task) if task else None

    def register(call):
        name = call.__name__
        tools[name] = t.Tool(name=name, description=description, inputSchema=schema, icons=[ICON], execution=execution)
        calls[name] = call
        return call

    return register


def says(text):
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


def shows(model):
    return says(model.model_dump_json(exclude_none=True))


def asks_for(field):
    return {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}


@tool("Gives back the text.", {"text": {"type": "string"}}, ["text"])
async def echo(session, text):
    return says(text)


@tool("Adds two numbers.", {"a": {"type": "number"}, "b": {"type": "number"}}, ["a", "b"])
async def add(session, a, b):
    return says(f"{a + b:g}")


@tool("Asks for a form to be filled in.")
async def ask_form(session):
    return shows(await session.elicit_form("Which ship, and where to?", BERTH))


@tool("Asks for a page to be visited.")
async def ask_url(session):
    identity = str(uuid4())
    answer = await session.elicit_url("Pay the harbour dues.", DUES, identity)
    if answer.action == "accept":
        await session.send_elicit_complete(identity)
    return shows(answer)


@tool("Refuses until a page was visited.", {"ship": {"type": "string"}}, ["ship"])
async def need_url(session, ship):
    if ship in billed:
        return says(f"{ship} has paid.")
    billed.add(ship)
    page = t.ElicitRequestURLParams(message="Pay the harbour dues.", url=DUES, elicitationId=str(uuid4()))
    raise UrlElicitationRequiredError([page])


@tool("Asks two things, one after the other.")
async def ask_twice(session):
    # Over HTTP these come with the answer to the call, and the questions of the other tools on the stream beside it.
    request = server.request_context.request_id
    first = await session.elicit_form("Which name?", asks_for("name"), request)
    second = await session.elicit_form("Which port?", asks_for("port"), request)
    return says(f"{(first.content or {}).get('name')} sails to {(second.content or {}).get('port')}.")


@tool("Asks the model, which may have a tool.", {"tools": {"type": "boolean", "default": False}})
async def ask_model(session, tools=False):
    messages = list(QUESTION)
    more = {"tools": [TIDE], "tool_choice": t.ToolChoice(mode="auto")} if tools else {}
    hints = t.ModelPreferences(hints=[t.ModelHint(name="small")], costPriority=0.9)
    while True:
        answer = await session.create_message(
            messages, max_tokens=50, system_prompt="Answer in one word.", model_preferences=hints, **more
        )
        content = answer.content if isinstance(answer.content, list) else [answer.content]
        uses = [block for block in content if isinstance(block, t.ToolUseContent)]
        if not uses:
            return shows(answer)
        noon = [t.TextContent(type="text", text="at noon")]
        results = [t.ToolResultContent(type="tool_result", toolUseId=use.id, content=noon) for use in uses]
        messages += [t.SamplingMessage(role="assistant", content=uses), t.SamplingMessage(role="user", content=results)]


@tool("Lists the roots of the client.")
async def show_roots(session):
    roots = (await session.list_roots()).roots
    return says(json.dumps([root.model_dump(mode="json", exclude_none=True) for root in roots]))


@tool("Asks for a form, the model and the roots at once.")
async def ask_all(session):
    answers = {}

    async def ask(name, question, *words, **more):
        answers[name] = (await question(*words, **more)).model_dump(mode="json", exclude_none=True)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "name", session.elicit_form, "Which name?", asks_for("name"))
        group.start_soon(lambda: ask("model", session.create_message, QUESTION, max_tokens=50))
        group.start_soon(ask, "roots", session.list_roots)
    return says(json.dumps(answers))


@tool("Logs a message.", {"level": {"enum": LEVELS}, "message": {"type": "string"}}, ["level", "message"])
async def log(session, level, message):
    # The SDK leaves it to the server to be silent below the level that was set.
    if LEVELS.index(level) >= LEVELS.index(threshold):
        await session.send_log_message(level, {"message": message}, logger="quay")
    return says("logged")


@tool("Takes its time.", {"steps": {"type": "integer"}, "wait_ms": {"type": "number", "default": 20}}, ["steps"])
async def slow(session, steps, wait_ms=20):
    request, meta = str(server.request_context.request_id), server.request_context.meta
    token = meta.progressToken if meta else None
    with tells_when_stopped():
        for step in range(1, steps + 1):
            await anyio.sleep(wait_ms / 1000)
            if token is not None:
                await session.send_progress_notification(token, step, steps, f"step {step}", request)
    return says(f"{steps} steps")


async def make_tea(session, steps=3, ask=False):
    async def work(task: ServerTaskContext):
        for step in range(1, steps + 1):
            await anyio.sleep(0.02)
            await task.update_status(f"step {step}")
            # The SDK marks the task and lets the work go on.
            if task.task.status == "cancelled":
                return says("no tea")
        return shows(await task.elicit("Which milk?", asks_for("milk"))) if ask else says("tea")

    experimental = server.request_context.experimental
    return await experimental.run_task(work) if experimental.is_task else says("tea")


BREW = {"steps": {"type": "integer", "default": 3}, "ask": {"type": "boolean", "default": False}}


@tool("Makes tea.", BREW, task="optional")
async def brew(session, **wanted):
    return await make_tea(session, **wanted)


@tool("Makes tea.", BREW, task="required")
async def brew_later(session, **wanted):
    return await make_tea(session, **wanted)


@tool("Changes the counter.")
async def touch(session):
    global counter
    counter += 1
    if COUNTER in wanted:
        await session.send_resource_updated(AnyUrl(COUNTER))
    return says(str(counter))


@tool("Adds a tool.")
async def grow(session):
    async def grown(session):
        return says(grown.__name__)

    grown.__name__ = f"grown_{1 + sum(name.startswith('grown') for name in tools)}"
    tool("Was not there before.")(grown)
    await session.send_tool_list_changed()
    return says(grown.__name__)


@server.list_tools()
async def list_tools(request: t.ListToolsRequest) -> t.ListToolsResult:
    # The SDK itself asks, with nothing, when it wants to check arguments.
    if request is None:
        return t.ListToolsResult(tools=list(tools.values()))
    start = int(request.params.cursor) if request.params and request.params.cursor else 0
    page = list(tools.values())[start : start + PAGE]
    more = start + PAGE < len(tools)
    return t.ListToolsResult(tools=page, nextCursor=str(start + PAGE) if more else None)


@server.call_tool()
async def call_tool(name, arguments):
    if name not in tools:
        raise ValueError(f"no tool {name}")
    context = server.request_context
    context.experimental.validate_for_tool(tools[name])
    return await calls[name](context.session, **arguments)


@server.list_resources()
async def list_resources() -> list[t.Resource]:
    return [t.Resource(uri=AnyUrl(f"note://{name}"), name=name, mimeType="text/plain") for name in ("hello", "counter")]


@server.list_resource_templates()
async def list_resource_templates() -> list[t.ResourceTemplate]:
    return [t.ResourceTemplate(uriTemplate="port://{name}", name="port", mimeType="text/plain")]


@server.read_resource()
async def read_resource(uri: AnyUrl):
    texts = {"note://hello": "Hello from the quay.", COUNTER: str(counter)}
    texts |= {f"port://{port}": f"The port of {port}." for port in PORTS}
    if str(uri) not in texts:
        raise McpError(t.ErrorData(code=-32002, message="Resource not found", data={"uri": str(uri)}))
    return [ReadResourceContents(content=texts[str(uri)], mime_type="text/plain")]


@server.subscribe_resource()
async def subscribe(uri: AnyUrl):
    wanted.add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl):
    wanted.discard(str(uri))


@server.set_logging_level()
async def set_level(level: t.LoggingLevel):
    global threshold
    threshold = level


@server.list_prompts()
async def list_prompts() -> list[t.Prompt]:
    name = t.PromptArgument(name="name", description="Whom to greet.", required=True)
    return [t.Prompt(name="greet", description="Greets somebody.", arguments=[name], icons=[ICON])]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name != "greet":
        raise McpError(t.ErrorData(code=t.INVALID_PARAMS, message=f"no prompt {name}"))
    text = f"Please greet {(arguments or {})['name']}."
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=t.TextContent(type="text", text=text))])


@server.completion()
async def complete(ref, argument, context):
    words = NAMES if isinstance(ref, t.PromptReference) else PORTS
    values = [word for word in words if word.lower().startswith(argument.value.lower())]
    return t.Completion(values=values, total=len(values), hasMore=False)


async def over_stdio():
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def streamable_http_app():
    manager = StreamableHTTPSessionManager(app=server)
    return Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lambda app: manager.run())


def sse_app():
    transport = SseServerTransport("/messages/")

    async def handle(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", handle), Mount("/messages/", app=transport.handle_post_message)])


if __name__ == "__main__":
    if "--http" in sys.argv:
        serve(streamable_http_app(), "/mcp")
    elif "--sse" in sys.argv:
        serve(sse_app(), "/sse")
    else:
        anyio.run(over_stdio)
