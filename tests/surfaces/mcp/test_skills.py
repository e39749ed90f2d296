"""Skills by MCP's Skills extension, as clients of others read them."""

import base64
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.skills.client import SkillsClientExtension
from mcp import Client, MCPError

from divingbell import Divingbell
from divingbell.principal import Principal
from divingbell.skills import skill_file
from divingbell.skills.record import Record
from divingbell.skills.skill import Skill
from divingbell.skills.store import FOLDER_NAME, Stores
from divingbell.surfaces.auth import hash_of
from divingbell.surfaces.mcp import skills
from divingbell.surfaces.mcp.server import Surface
from tests.skills.samples import RECORD, made
from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.serving import COMMAND, QUIET, serving
from tests.waiting import PATIENCE

NAME, URI = "top-customers", "skill://top-customers/SKILL.md"
IMAGE = b"\x89PNG\r\n\x1a\n\0\1\2"


def rich_skill() -> Skill:
    """A skill with files of every kind."""
    head = "---\nname: top-customers\ndescription: Finds customers. Use it in tests.\n"
    head += "license: MIT\nmetadata:\n  version: 1.5\n  author: Ann\n---\n"
    files = {
        "scripts/top_customers.py": b"def run():\n    return '\xe2\x80\xae'\n",
        "references/a file & more.md": b"# More\r\n",
        "assets/logo.png": IMAGE,
    }
    return skill_file.parse(f"{head}\n# Customers\r\n".encode(), files, foreign=True)


def fast(transport: Any) -> Any:
    return FastClient(transport, extensions=[SkillsClientExtension()], timeout=PATIENCE)


async def judge(client: Any, skill: Skill) -> None:
    """Read a skill as fastmcp does: it compares sizes, digests and the head with what it gets."""
    [entry] = await client.list_skills()
    assert entry.uri == URI and entry.frontmatter.name == NAME
    assert entry.frontmatter.metadata == {"version": 1.5, "author": "Ann"}
    assert await client.get_skill(URI) == entry
    read = await client.read_skill(URI)
    assert dict(read.files) == skill.all_files


async def test_fastmcp_reads_them_over_stdio(tmp_path: Path) -> None:
    skill = rich_skill()
    Stores(tmp_path / "divingbell" / FOLDER_NAME).of("").save(skill, RECORD)
    variables = {**os.environ, **QUIET, "XDG_DATA_HOME": str(tmp_path)}
    async with fast(StdioTransport(COMMAND, ["serve"], env=variables)) as client:
        await judge(client, skill)


async def test_fastmcp_reads_them_over_http_and_each_user_has_their_own(tmp_path: Path) -> None:
    stores = Stores(tmp_path / "divingbell" / FOLDER_NAME)
    skill = rich_skill()
    stores.of("ann").save(skill, RECORD)
    stores.of("bob").save(made("other-one"), RECORD)
    tokens = {"ann": "ann-has-a-long-token-1", "bob": "bob-has-a-long-token-1"}
    lines = [f"{name}: {hash_of(token)}" for name, token in tokens.items()]
    (tmp_path / "tokens").write_text("\n".join(lines))
    (tmp_path / "tokens").chmod(0o600)
    arguments = ("--tokens", str(tmp_path / "tokens"))
    async with serving(*arguments, environment={"XDG_DATA_HOME": str(tmp_path)}) as served:

        def of(user: str) -> Any:
            return fast(StreamableHttpTransport(served.url, auth=tokens[user]))

        async with of("ann") as ann:
            await judge(ann, skill)
        async with of("bob") as bob:
            assert [each.frontmatter.name for each in await bob.list_skills()] == ["other-one"]
            with pytest.raises(MCPError, match="No skill is served"):
                await bob.get_skill(URI)
            with pytest.raises(MCPError, match="No skill is served"):
                await bob.read_resource(URI)
            listed = [str(each.uri) for each in await bob.list_resources()]
            assert listed == ["skill://other-one/SKILL.md"]
