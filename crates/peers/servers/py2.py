"""A small server on the Python SDK 2, for the tests: something of everything that a client has to support. The
SDK answers whichever era the client opens with, and turns the questions of the tools into `input_required`
results or into requests accordingly, except for pages to visit. It is reached over stdio, with `--http` over
Streamable HTTP, and with `--sse` over the HTTP+SSE of 2024-11-05.

The SDK has no tasks, and its upper interface no pages. It reads its input in a thread that cannot be stopped,
so there is no way to leave, but there is one to end the subscriptions.
"""

import json
import sys
import warnings
from functools import partial
from typing import Annotated, Literal
from uuid import uuid4

import anyio
import mcp_types as t
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Icon, ListRoots, MCPServer, Resolve, Sample
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel, Field

from listening import serve, tells_when_stopped

COUNTER = "note://counter"
DUES = "https://example.org/dues?ship=7"
STATELESS = "2026-07-28"
NAMES = ["Ada", "Alan", "Grace"]
PORTS = ["genoa", "ghent", "riga"]
LEVELS = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
ICON = Icon(src="data:image/svg+xml;base64,PHN2Zy8+", mime_type="image/svg+xml", sizes=["any"], theme="light")
PUBLIC = CacheHint(ttl_ms=60000, scope="public")
PRIVATE = CacheHint(ttl_ms=5000)

# Logging, sampling and roots are old-fashioned, and are to be tested all the same.
warnings.simplefilter("ignore", MCPDeprecationWarning)

bus = InMemorySubscriptionBus()
listen = ListenHandler(bus)
server = MCPServer(
    "py2-peer",
    title="Quay",
    version="1.0.0",
    instructions="Ask the harbour master.",
    website_url="https://example.org",
    icons=[ICON],
    log_level="WARNING",
    cache_hints={"tools/list": PUBLIC, "prompts/list": PUBLIC, "resources/list": PRIVATE, "resources/read": PRIVATE},
    subscriptions=bus,
)
lower = server._lowlevel_server
announce = partial(lower.create_initialization_options, NotificationOptions(tools_changed=True))
# Over HTTP it is the SDK who asks, with nothing.
lower.create_initialization_options = announce
lower.add_request_handler("subscriptions/listen", t.SubscriptionsListenRequestParams, listen)

wanted: set[str] = set()
counter = 0
grown = 0


@server.tool(title="Echo", description="Gives back the text.", icons=[ICON], structured_output=False)
def echo(text: str) -> str:
    return text


@server.tool(description="Adds two numbers.", structured_output=False)
def add(a: float, b: float) -> str:
    return f"{a + b:g}"


class Berth(BaseModel):
    name: str = Field(title="Ship", description="What she is called.", min_length=1, max_length=40)
    email: str = Field("master@example.org", json_schema_extra={"format": "email"})
    arrival: str | None = Field(None, json_schema_extra={"format": "date"})
    berth: int = Field(3, ge=1, le=12)
    draught: float = Field(2.5, ge=0.5)
    insured: bool = True
    flag: Literal["it", "nl", "lv"] = "nl"
    tide: str = Field("high", json_schema_extra={"oneOf": [{"const": "high", "title": "High water"}]})
    cargo: list[Literal["salt", "rope", "tea"]] = Field(["salt"], max_length=2)


class Name(BaseModel):
    name: str


class Port(BaseModel):
    port: str


def asks_berth() -> Elicit[Berth]:
    return Elicit("Which ship, and where to?", Berth)


@server.tool(description="Asks for a form to be filled in.", structured_output=False)
def ask_form(answer: Annotated[ElicitationResult[Berth], Resolve(asks_berth)]) -> str:
    content = {"content": answer.data.model_dump(exclude_unset=True)} if answer.action == "accept" else {}
    return json.dumps({"action": answer.action, **content})


@server.tool(description="Asks for a page to be visited.", structured_output=False)
async def ask_url(ctx: Context) -> str | t.InputRequiredResult:
    if ctx.protocol_version < STATELESS:
        identity = str(uuid4())
        answer = await ctx.elicit_url("Pay the harbour dues.", DUES, identity)
        if answer.action == "accept":
            await ctx.session.send_elicit_complete(identity)
    elif ctx.input_responses is None:
        page = t.ElicitRequestURLParams(message="Pay the harbour dues.", url=DUES)
        return t.InputRequiredResult(input_requests={"page": t.ElicitRequest(params=page)})
    else:
        answer = ctx.input_responses["page"]
    return json.dumps({"action": answer.action})


def asks_name() -> Elicit[Name]:
    return Elicit("Which name?", Name)


def asks_port(name: Annotated[Name, Resolve(asks_name)]) -> Elicit[Port]:
    return Elicit(f"Which port for {name.name}?", Port)


@server.tool(description="Asks two things, one after the other.", structured_output=False)
def ask_twice(name: Annotated[Name, Resolve(asks_name)], port: Annotated[Port, Resolve(asks_port)]) -> str:
    return f"{name.name} sails to {port.port}."


QUESTION = [t.SamplingMessage(role="user", content=t.TextContent(text="When is high water?"))]
TIDE = t.Tool(name="tide", description="Says when.", input_schema={"type": "object", "properties": {}})


def sample(messages, tools=False) -> Sample:
    more = {"tools": [TIDE], "tool_choice": t.ToolChoice(mode="auto")} if tools else {}
    hints = t.ModelPreferences(hints=[t.ModelHint(name="small")], cost_priority=0.9)
    return Sample(messages, max_tokens=50, system_prompt="Answer in one word.", model_preferences=hints, **more)


def asks_model(tools: bool) -> Sample:
    return sample(QUESTION, tools)


def asks_again(tools: bool, said: Annotated[t.CreateMessageResultWithTools, Resolve(asks_model)]):
    """Gives the model what its tool says, if it called one."""
    content = said.content if isinstance(said.content, list) else [said.content]
    uses = [block for block in content if isinstance(block, t.ToolUseContent)]
    if not uses:
        return said
    noon = [t.TextContent(text="at noon")]
    results = [t.ToolResultContent(tool_use_id=use.id, content=noon) for use in uses]
    turn = [t.SamplingMessage(role="assistant", content=uses), t.SamplingMessage(role="user", content=results)]
    return sample(QUESTION + turn, tools)


@server.tool(description="Asks the model, which may have a tool.", structured_output=False)
def ask_model(
    said: Annotated[t.CreateMessageResult | t.CreateMessageResultWithTools, Resolve(asks_again)], tools: bool = False
) -> str:
    return said.model_dump_json(by_alias=True, exclude_none=True)


def asks_roots() -> ListRoots:
    return ListRoots()


@server.tool(description="Lists the roots of the client.", structured_output=False)
def show_roots(listed: Annotated[t.ListRootsResult, Resolve(asks_roots)]) -> str:
    return json.dumps([root.model_dump(mode="json", by_alias=True, exclude_none=True) for root in listed.roots])


def asks_plain_model() -> Sample:
    return sample(QUESTION)


@server.tool(description="Asks for a form, the model and the roots at once.", structured_output=False)
def ask_all(
    name: Annotated[Name, Resolve(asks_name)],
    model: Annotated[t.CreateMessageResult, Resolve(asks_plain_model)],
    roots: Annotated[t.ListRootsResult, Resolve(asks_roots)],
) -> str:
    return f"{name.name}, {model.content.text}, {roots.roots[0].uri}"


@server.tool(name="log", description="Logs a message.", structured_output=False)
async def write_log(level: LEVELS, message: str, ctx: Context) -> str:
    await ctx.log(level, {"message": message}, logger_name="quay")
    return "logged"


@server.tool(description="Takes its time.", structured_output=False)
async def slow(steps: int, ctx: Context, wait_ms: float = 20) -> str:
    with tells_when_stopped():
        for step in range(1, steps + 1):
            await anyio.sleep(wait_ms / 1000)
            await ctx.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


@server.tool(description="Changes the counter.", structured_output=False)
async def touch(ctx: Context) -> str:
    global counter
    counter += 1
    await ctx.notify_resource_updated(COUNTER)
    if COUNTER in wanted:
        await ctx.session.send_resource_updated(COUNTER)
    return str(counter)


@server.tool(description="Adds a tool.", structured_output=False)
async def grow(ctx: Context) -> str:
    global grown
    grown += 1
    name = f"grown_{grown}"
    server.add_tool(lambda: name, name=name, description="Was not there before.", structured_output=False)
    await ctx.notify_tools_changed()
    if ctx.protocol_version < STATELESS:
        await ctx.session.send_tool_list_changed()
    return name


@server.tool(description="Ends the subscriptions.", structured_output=False)
async def end_listen() -> str:
    listen.close()
    return "ended"


@server.resource("note://hello", name="hello", mime_type="text/plain", icons=[ICON])
def hello() -> str:
    return "Hello from the quay."


@server.resource(COUNTER, name="counter", mime_type="text/plain")
def count() -> str:
    return str(counter)


@server.resource("port://{name}", name="port", mime_type="text/plain")
def port(name: str) -> str:
    return f"The port of {name}."


@server.prompt(description="Greets somebody.", icons=[ICON])
def greet(name: str) -> str:
    return f"Please greet {name}."


@server.completion()
async def complete(ref, argument, context):
    words = NAMES if isinstance(ref, t.PromptReference) else PORTS
    values = [word for word in words if word.lower().startswith(argument.value.lower())]
    return t.Completion(values=values, total=len(values), has_more=False)


async def subscribe(ctx, params: t.SubscribeRequestParams) -> t.EmptyResult:
    wanted.add(str(params.uri))
    return t.EmptyResult()


async def unsubscribe(ctx, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
    wanted.discard(str(params.uri))
    return t.EmptyResult()


async def set_level(ctx, params: t.SetLevelRequestParams) -> t.EmptyResult:
    """Is here to be declared: in the handshake era the SDK sends whatever is logged."""
    return t.EmptyResult()


lower.add_request_handler("resources/subscribe", t.SubscribeRequestParams, subscribe)
lower.add_request_handler("resources/unsubscribe", t.UnsubscribeRequestParams, unsubscribe)
lower.add_request_handler("logging/setLevel", t.SetLevelRequestParams, set_level)


async def over_stdio():
    async with stdio_server() as (incoming, outgoing):
        await lower.run(incoming, outgoing, announce())


if __name__ == "__main__":
    if "--http" in sys.argv:
        serve(server.streamable_http_app(), "/mcp")
    elif "--sse" in sys.argv:
        serve(server.sse_app(), "/sse")
    else:
        anyio.run(over_stdio)
