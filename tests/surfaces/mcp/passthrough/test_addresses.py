"""Each resource has an address that no other server's can have."""

import mcp_types as types
import pytest
from mcp import MCPError

from divingbell.surfaces.mcp.passthrough.addresses import Addresses

ONE, TWO, NONE = Addresses({"a"}), Addresses({"a", "b-c"}), Addresses(())


def test_with_one_server_addresses_are_its_own_but_for_ours() -> None:
    assert ONE.given("a", "x://y") == "x://y" and ONE.taken("x://y") == ("a", "x://y")
    for ours in ("divingbell://sessions/s/files/x", "DivingBell://x"):
        assert ONE.given("a", ours) is None and not ONE.has(ours)
        with pytest.raises(MCPError):
            ONE.taken(ours)


@pytest.mark.parametrize(
    "uri", ["x://y", "", "/", "divingbell://servers/a/x", "divingbell://", "{+x}"]
)
def test_with_several_each_address_leads_back_to_its_server(uri: str) -> None:
    for server in ("a", "b-c"):
        given = TWO.given(server, uri)
        assert given is not None and TWO.has(given) and TWO.taken(given) == (server, uri)


@pytest.mark.parametrize(
    "uri", ["x://y", "divingbell://servers/d/x", "divingbell://sessions/s/files/x"]
)
def test_what_names_no_server_is_nobodys(uri: str) -> None:
    with pytest.raises(MCPError):
        TWO.taken(uri)
    assert not NONE.has(uri)


def test_addresses_in_results_are_those_that_clients_know() -> None:
    inner = types.TextResourceContents(uri="x://y", text="x://y")
    blocks = [types.EmbeddedResource(resource=inner), types.ResourceLink(uri="x://z", name="z")]
    result = types.CallToolResult(content=[*blocks, types.TextContent(text="x://y")])
    assert ONE.renamed("a", result) is result
    told = TWO.renamed("a", result).model_dump_json()
    assert told.count("divingbell://servers/a/x://") == 2 and '"text":"x://y"' in told
    assert "divingbell" not in result.model_dump_json()


def test_schemes_of_ours_are_no_servers() -> None:
    addresses = Addresses({"a"}, ("skill://",))
    for uri in ("skill://x/SKILL.md", "SKILL://x/SKILL.md", "divingbell://x"):
        assert addresses.given("a", uri) is None and not addresses.has(uri)
    assert addresses.has("x://y") and ONE.has("skill://x/SKILL.md")
