"""The server for the Model Context Protocol on stdin and stdout. The server only reads files, and only those of one
logdir.

The package `mcp` is optional. This module is imported only if `mcp` is installed.
"""

import asyncio
import json
import logging
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from tb_bottleneck.agents import overview, recording_tools
from tb_bottleneck.agents.answers import UNTRUSTED
from tb_bottleneck.agents.tool import Session, Tool
from tb_bottleneck.agents.training_reports import AgentLogdir, Trainings
from tb_bottleneck.agents.workers import Tell, Workers
from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.units import one_line
from tb_bottleneck.version import __version__

INSTRUCTIONS = (
    "Diagnoses why PyTorch trainings under one logdir are slow. Begin with list_runs, then brief(id). All tools only "
    "read. Answers are JSON; next_offset asks for the next page. " + UNTRUSTED
)
_MAX_ERROR = 500  # characters
_log = logging.getLogger(__name__)


def tools() -> dict[str, Tool]:
    """Returns a dict from names to tools, in the order in which the server lists the tools."""
    return {tool.name: tool for tool in (*overview.TOOLS, *recording_tools.TOOLS)}


def declarations() -> list[types.Tool]:
    """Returns the declarations of the tools for the protocol. All tools only read files, and only those of the
    logdir."""
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints)
        for tool in tools().values()
    ]


def server_of(session: Session) -> "Server[Any]":
    """Returns a server whose tools use `session`."""
    known = tools()

    async def list_tools(context: ServerRequestContext, request: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=declarations())

    async def call_tool(context: ServerRequestContext, request: types.CallToolRequestParams) -> types.CallToolResult:
        told = 0.0

        async def tell(share: float) -> None:
            nonlocal told
            if share > told:  # the protocol asks for growing values, but each part of a call begins at 0 again
                told = share
                await context.session.report_progress(share, 1.0)

        text, failed = await _answered(session, known, request.name, request.arguments or {}, tell)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    return Server(
        "tb_bottleneck",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answered(
    session: Session, known: dict[str, Tool], name: str, arguments: dict[str, Any], tell: Tell
) -> tuple[str, bool]:
    """Returns (answer of the tool `name`, False), or (error as JSON, True). Raises only when cancelled."""
    if name not in known:
        return _error(f"there is no tool of this name; there are {', '.join(known)}"), True
    try:
        return await known[name].run(session, known[name].checked(arguments), tell), False
    except BottleneckError as error:
        return _error(str(error)), True
    except Exception as error:
        _log.exception("The tool %s failed", name)
        return _error(f"{name} failed because of an error in tb_bottleneck: {type(error).__name__}"), True


def _error(sentence: str) -> str:
    return json.dumps({"error": one_line(sentence, _MAX_ERROR)}, ensure_ascii=False)


def serve(logdir: str) -> None:
    """Serves one client on stdin and stdout. Returns when the client closes stdin.

    Raises:
        NotFound: the logdir does not exist.
    """
    workers = Workers()
    session = Session(AgentLogdir(logdir), workers, Trainings(workers))
    try:
        asyncio.run(_serve(session))
    except Exception as error:
        if not _is_end_of_client(error):
            raise
    finally:
        workers.close()


def _is_end_of_client(error: BaseException) -> bool:
    """Returns True if `error`, or each error of an exception group, says that the client closed its end of a pipe."""
    parts = getattr(error, "exceptions", None)  # an ExceptionGroup, which Python has from 3.11 on
    return all(map(_is_end_of_client, parts)) if parts else isinstance(error, ConnectionError)


async def _serve(session: Session) -> None:
    server = server_of(session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
