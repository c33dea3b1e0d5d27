"""A client of `tb-bottleneck mcp`: the client of the SDK, in a form that tests can script."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHARACTERS_PER_TOKEN = 4


@dataclass
class Agent:
    """A connected client that counts what it reads."""

    client: Any
    characters: int = 0
    texts: list[str] = field(default_factory=list)

    async def tools(self) -> list[dict[str, Any]]:
        """Returns the list of the tools as the server sends it."""
        listed = (await self.client.list_tools()).tools
        tools = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed]
        self.characters += len(json.dumps(tools, separators=(",", ":")))
        return tools

    async def text(self, name: str, progress: Any = None, **arguments: Any) -> tuple[str, bool]:
        """Returns the text of an answer, and whether it is an error."""
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        (content,) = result.content
        self.characters += len(content.text)
        self.texts.append(content.text)
        return content.text, result.is_error

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Returns an answer that is no error."""
        text, failed = await self.text(name, **arguments)
        assert not failed, text
        values: dict[str, Any] = json.loads(text)
        return values

    async def refused(self, name: str, **arguments: Any) -> str:
        """Returns the sentence of an error."""
        text, failed = await self.text(name, **arguments)
        assert failed, text
        return str(json.loads(text)["error"])

    @property
    def tokens(self) -> int:
        """The estimate of the tokens that were read."""
        return self.characters // CHARACTERS_PER_TOKEN


def command(logdir: str | Path) -> list[str]:
    return [sys.executable, "-m", "tb_bottleneck", "mcp", str(logdir)]


@asynccontextmanager
async def connected(logdir: str | Path) -> AsyncIterator[Agent]:
    """Starts a server, and ends it afterwards."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    first, *rest = command(logdir)
    server = StdioServerParameters(command=first, args=rest, env=dict(os.environ), cwd=str(ROOT))
    async with Client(stdio_client(server)) as client:
        yield Agent(client)


def with_agent(logdir: str | Path, script: Callable[[Agent], Awaitable[Any]]) -> Any:
    """Runs a script with a server of its own."""

    async def run() -> Any:
        async with connected(logdir) as agent:
            return await script(agent)

    return asyncio.run(run())
