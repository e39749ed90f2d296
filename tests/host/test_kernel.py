"""What the kernel allows, and what is said about what it refuses."""

import ctypes
from pathlib import Path

import pytest

from divingbell.host import kernel


@pytest.fixture
def sysctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel, "_SYSCTL", tmp_path)
    (tmp_path / "user").mkdir()
    (tmp_path / "kernel").mkdir()
    return tmp_path


def _refuse(_: str) -> str:
    return "unshare: Operation not permitted"


def test_this_machine_can_run_the_local_backend() -> None:
    assert kernel.why_not() is None


def test_an_old_kernel_is_named() -> None:
    finding = kernel._kernel("5.4.0-100-generic")
    assert finding.state == "missing" and finding.blocking and "5.12" in finding.detail
    assert kernel._kernel("5.12.0").state == "ok"
    assert kernel._kernel("6.18.44-fc").state == "ok"


def test_namespaces_that_are_off_come_with_the_command(sysctl: Path) -> None:
    (sysctl / "user/max_user_namespaces").write_text("0\n")
    finding = kernel._user_namespaces()
    assert finding.state == "missing" and "sysctl -w user.max_user_namespaces" in finding.advice


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("apparmor_restrict_unprivileged_userns", "1", "/etc/apparmor.d/divingbell"),
    ],
)
def test_a_refused_namespace_is_explained(
    sysctl: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, advice: str
) -> None:
    (sysctl / "kernel" / name).write_text(value)
    monkeypatch.setattr(kernel, "_try", _refuse)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    finding = kernel._user_namespaces()
    assert finding.blocking and name in finding.detail and advice in finding.advice
    assert advice in (kernel.why_not() or "")


def test_a_masked_proc_names_the_cause_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(attempt: str) -> str | None:
        return "mount of a /proc: Operation not permitted" if attempt == "proc" else None

    monkeypatch.setattr(kernel, "_try", refuse)
    monkeypatch.setattr(kernel, "_proc_is_masked", lambda: True)
    finding = kernel._proc()
    assert finding.blocking and "masked" in finding.detail
    assert "--security-opt systempaths=unconfined" in finding.advice
    assert "masked" in (kernel.why_not() or "")


def test_what_is_tried_does_not_touch_this_process() -> None:
    before = Path("/proc/self/ns/user").readlink(), Path("/proc/self/ns/mnt").readlink()
    assert kernel._try("namespaces") is None
    assert kernel._try("proc") is None
    assert (Path("/proc/self/ns/user").readlink(), Path("/proc/self/ns/mnt").readlink()) == before


def test_an_attempt_that_breaks_is_a_refusal() -> None:
    assert "KeyError" in (kernel._try("nonsense") or "")


def test_an_attempt_runs_no_module_that_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ctypes.py", "divingbell.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert "KeyError" in (kernel._try("nonsense") or "")
    assert not (tmp_path / "mark").exists()


def test_what_the_kernel_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: ctypes.CDLL) -> None:
        kernel._expect(-1, "unshare")

    monkeypatch.setitem(kernel._ATTEMPTS, "namespaces", refuse)
    assert kernel._main("namespaces") == 1
    assert capsys.readouterr().out.startswith("unshare: ")


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert kernel._system().blocking
