"""Sessions as they are shown: in a line, and in a notebook."""

import pytest

from divingbell import Divingbell
from divingbell.session import notebook
from tests.waiting import until


async def test_a_session_is_one_short_line(bell: Divingbell) -> None:
    async with bell.session("analysis", user="user-1") as session:
        assert repr(session) == "<Session 'analysis' of 'user-1': 0 cells, idle>"
        await session.run("kept = 'not shown'")
        assert repr(session) == "<Session 'analysis' of 'user-1': 1 cell, idle>"
        running = session.stream("import time; print(1, flush=True); time.sleep(60)")
        await anext(running)
        assert repr(session) == "<Session 'analysis' of 'user-1': 2 cells, busy>"
        await running.aclose()
        await until(lambda: not session.busy, "the cell has ended")
    assert repr(session) == "<Session 'analysis' of 'user-1': 2 cells, ended>"
    async with bell.session("alone") as session:
        assert repr(session) == "<Session 'alone': 0 cells, idle>"


async def test_a_divingbell_is_one_short_line() -> None:
    bell = Divingbell(pool=0, preload=(), policy={"pin": False})
    assert repr(bell) == "<Divingbell 'local': not running>"
    async with bell:
        assert repr(bell) == "<Divingbell 'local': 0 sessions>"
        async with bell.session():
            assert repr(bell) == "<Divingbell 'local': 1 session>"
    assert repr(bell) == "<Divingbell 'local': not running>"
    assert "not running" in bell._repr_html_()


async def test_all_text_is_escaped_in_html(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = "<script>alert('x')&\"</script>"
    async with bell.session(attack, user=attack, labels={attack: attack}) as session:
        for html in (session._repr_html_(), bell._repr_html_()):
            assert "<script" not in html
            assert html.count("&lt;script&gt;") >= 4
            assert "<td>0</td><td>idle</td>" in html


async def test_a_table_has_a_bounded_number_of_rows(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook, "MOST_ROWS", 1)
    async with bell.session(), bell.session(), bell.session():
        assert bell._repr_html_().count("<tr>") == 2
        assert "<p>and 2 sessions more</p>" in bell._repr_html_()
