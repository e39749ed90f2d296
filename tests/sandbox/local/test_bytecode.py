"""The bytecode of what runs inside, which the zygote can't write for itself."""

import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.sandbox.local import bytecode


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "one.py").write_text("1")
    (tmp_path / "two.py").write_text("2")
    return tmp_path


def compiled(package: Path) -> list[str]:
    return sorted(
        path.name for path in package.glob("*.py") if os.path.exists(cache_from_source(str(path)))
    )


def test_what_has_none_is_compiled_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bytecode.provide(package)
    assert compiled(package) == ["one.py", "two.py"]
    monkeypatch.setattr("compileall.compile_dir", lambda *_, **__: pytest.fail("once more"))
    bytecode.provide(package)


def test_what_was_changed_is_compiled_again(package: Path) -> None:
    bytecode.provide(package)
    cache = Path(cache_from_source(str(package / "one.py")))
    before = cache.read_bytes()
    (package / "one.py").write_text("1 + 1")
    os.utime(cache, (0, 0))
    bytecode.provide(package)
    assert cache.read_bytes() != before


def test_nothing_is_written_where_python_was_told_so(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    bytecode.provide(package)
    assert compiled(package) == []


async def test_a_zygote_compiles_none_of_our_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    bell = Divingbell(pool=0, preload=[])
    async with bell, bell.session() as session:
        # Where bytecode was found, a module knows where.
        code = (
            "import sys, os\n[name for name, module in sys.modules.items() if name.startswith("
            "'divingbell_inside.') and not os.path.exists(module.__cached__)]"
        )
        assert (await session.run(code)).value == []
