"""deploy/docker: what sessions need is in it, and is enough in a container."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from divingbell.errors import ConfigError
from divingbell.host import descriptors
from divingbell.host.profile import prepare
from divingbell.promises import PROMISES
from divingbell.settings.config import PREFIX, Settings, load
from divingbell.surfaces import auth
from tests import real_servers
from tests.surfaces.cli.command import COMMAND

DEPLOY = Path(__file__).parents[2] / "deploy"
TOKEN = "anne-has-a-long-token"
PATIENCE = 120.0
CHECKING = 900.0
"""Seconds for all attacks, on a busy machine."""


def test_the_compose_file_has_what_sessions_need() -> None:
    found = yaml.safe_load((DEPLOY / "docker" / "compose.yml").read_text())
    service = found["services"]["divingbell"]
    assert service["security_opt"] == ["seccomp=unconfined", "systempaths=unconfined"]
    usual = Settings()
    assert service["ulimits"]["nofile"] >= descriptors.needed(usual.max_sessions + usual.pool)
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_dockerfile_is_the_one_of_the_docs() -> None:
    page = (DEPLOY.parent / "docs" / "platforms.md").read_text()
    [shown] = re.findall(r"```dockerfile\n(.*?)```", page, re.DOTALL)
    assert (DEPLOY / "docker" / "Dockerfile").read_text() == shown


def test_the_example_of_an_environment_can_be_used() -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    settings = load(environment=pairs)
    assert settings.metrics == "on" and settings.token_price == 3
    assert all(name.startswith((PREFIX, "OTEL_")) for name in pairs)
    with pytest.raises(ConfigError, match="at least 16 characters"):  # everybody can read it here
        auth.load(None, (), {name: value.strip('"') for name, value in pairs.items()})


# In a container. No base can be fetched here, so the machine's own programs take the place of
# Debian's, read-only. All else is as the files have it: the user, the folders, the options, the
# volume. Nothing here reads compose.yml as compose does, which is not to be had: its options are
# read, and given to `docker run`.


@dataclass(frozen=True)
class Image:
    """An image in which the Dockerfile's own steps were done, and what is put into its place."""

    name: str
    binds: list[str]


def _docker(*words: str, stdin: bytes | None = None, check: bool = True) -> str:
    ran = subprocess.run(
        ["docker", *words], input=stdin, capture_output=True, timeout=PATIENCE, check=False
    )
    assert not check or ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    return ran.stdout.decode().strip()


def _bare() -> bytes:
    """A root without programs, as a tar: folders, links to the machine's, and one user."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name in ("usr", "proc", "sys", "dev", "run", "tmp", "var", "home", "root", "etc"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(folder)
        for name in ("bin", "sbin", "lib", "lib64"):
            if (Path("/") / name).is_symlink():
                tar.add(Path("/") / name, arcname=name)
        for name, text in (
            ("passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            ("group", "root:x:0:\n"),
            ("ld.so.cache", None),
            ("login.defs", None),
        ):
            content = Path("/etc", name).read_bytes() if text is None else text.encode()
            file = tarfile.TarInfo(f"etc/{name}")
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
    return held.getvalue()


def _steps() -> tuple[list[str], str]:
    """What the Dockerfile does that needs no network, as shell commands; and its user."""
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().splitlines()
    own = [line.removeprefix("RUN ") for line in lines if re.match("RUN (useradd|mkdir)", line)]
    [user] = [line.removeprefix("USER ") for line in lines if line.startswith("USER ")]
    after = lines.index(f"USER {user}")
    return [step if lines.index(f"RUN {step}") < after else _as(user, step) for step in own], user


def _as(user: str, step: str) -> str:
    return f"setpriv --reuid={user} --regid={user} --clear-groups /bin/sh -ec '{step}'"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    real_servers.need_program("docker")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        real_servers.missing("there is no Docker daemon")
    profile = prepare()
    shown = {Path("/usr"), Path(sys.prefix), Path(sys.base_prefix), DEPLOY.parent / "src"}
    binds = [f"{each}:{each}:ro" for each in sorted(shown)]
    binds += [f"{profile.path}:/home/diver/.cache/divingbell/profiles/{profile.path.name}:ro"]
    tag = f"divingbell-deploy-test:{os.getpid()}"
    steps, user = _steps()
    # In the place of the step that fetches the sandbox's packages: the folder that it makes.
    steps.append(_as(user, f"mkdir -p /home/{user}/.cache/divingbell/profiles"))
    maker = f"divingbell-deploy-{os.getpid()}"
    _docker("import", "-", tag, stdin=_bare())
    try:
        mounted = [word for bind in binds[:-1] for word in ("--volume", bind)]
        _docker(
            "run", "--name", maker, "--network", "none", *mounted, tag,
            "/bin/sh", "-ec", "\n".join(steps),
        )  # fmt: skip
        _docker("commit", "--change", f"USER {user}", maker, tag)
        yield Image(tag, binds)
    finally:
        _docker("rm", "--force", "--volumes", maker, check=False)
        _docker("rmi", "--force", tag, check=False)


@contextlib.contextmanager
def _started(image: Image) -> Iterator[str]:
    """Run the service as compose.yml has it; yield the name of its container."""
    service = yaml.safe_load((DEPLOY / "docker" / "compose.yml").read_text())["services"]
    given = service["divingbell"]
    name, volume = f"divingbell-run-{os.getpid()}", f"divingbell-kept-{os.getpid()}"
    [kept] = given["volumes"]
    command = [str(COMMAND), *given["command"]]
    _docker(
        "run", "--detach", "--name", name, "--network", "none",
        *(word for option in given["security_opt"] for word in ("--security-opt", option)),
        "--ulimit", f"nofile={given['ulimits']['nofile']}",
        "--memory", given["mem_limit"],
        "--env", f"DIVINGBELL_TOKENS=anne {TOKEN}", "--env", "HOME=/home/diver",
        "--volume", kept.replace("kept:", f"{volume}:"),
        *(word for bind in image.binds for word in ("--volume", bind)),
        image.name, *command,
    )  # fmt: skip
    try:
        yield name
    finally:
        _docker("rm", "--force", name)
        _docker("volume", "rm", "--force", volume)


ASK = f"""
import httpx2
with httpx2.Client(base_url="http://127.0.0.1:8642", timeout=60) as client:
    client.headers["Authorization"] = "Bearer {TOKEN}"
    print(client.post("/api/v1/execute", json={{"code": "6 * 7"}}).json()["value"])
"""
ANSWERS = """
import httpx2, sys
try:
    sys.exit(httpx2.get("http://127.0.0.1:8642/readyz").status_code != 200)
except httpx2.TransportError:
    sys.exit(1)
"""


def _asked(container: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "exec", container, *command],
        capture_output=True, text=True, timeout=CHECKING, check=False,
    )  # fmt: skip


def _wait_until_ready(container: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while _asked(container, sys.executable, "-c", ANSWERS).returncode:
        said = subprocess.run(["docker", "logs", container], capture_output=True, check=False)
        assert time.monotonic() < deadline, f"the service is not ready: {said.stderr.decode()}"
        time.sleep(0.2)


def test_in_a_container_the_walls_hold_and_what_lasts_is_the_users(
    image: Image,
) -> None:
    with _started(image) as container:
        _wait_until_ready(container)
        ran = _asked(container, sys.executable, "-c", ASK)
        assert ran.stdout == "42\n", ran.stderr
        # The volume is the user's: tokens are kept there, and hold in the service at once.
        made = _asked(container, str(COMMAND), "token", "create", "bert")
        assert made.returncode == 0, made.stderr
        kept = _asked(container, "stat", "-c", "%U %a", "/home/diver/.local/share/divingbell")
        assert kept.stdout == "diver 700\n", kept.stdout + kept.stderr
        checked = _asked(container, str(COMMAND), "doctor", "--check", "--json")
        found = json.loads(checked.stdout or "{}")
        assert found.get("promises"), checked.stdout[-2000:] + checked.stderr[-2000:]
        broken = [each for each in found["promises"] if not each["kept"]]
        assert not broken, [f"{each['id']}: {each['detail']}" for each in broken]
        told = {each["id"] for each in found["promises"] + found["not_promised"]}
        assert told == {each.id for each in PROMISES if each.about_sessions}
