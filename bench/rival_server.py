"""A sandbox that others wrote, measured in a process and an environment of its own.

Started with its kind and its settings. Each line that comes in asks for something, each line that
goes out is an answer with times, or says why there is none. It ends with its input.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

CREATION_TIMEOUT = 60.0


class Rival(Protocol):
    def session(self) -> AbstractContextManager[Any]: ...

    def run(self, session: Any, program: str) -> str:
        """Return what it prints."""


class LlmSandbox:
    def __init__(self, settings: dict[str, Any], *, interactive: bool) -> None:
        import llm_sandbox

        sessions = llm_sandbox.InteractiveSandboxSession, llm_sandbox.SandboxSession
        self._kind = sessions[0] if interactive else sessions[1]
        self._settings = settings

    def session(self) -> AbstractContextManager[Any]:
        made: AbstractContextManager[Any] = self._kind(
            lang="python",
            image=self._settings["image"],
            workdir=self._settings["workdir"],
            # It writes into what it is given.
            runtime_configs=json.loads(json.dumps(self._settings["walls"])),
            keep_template=True,
            skip_environment_setup=True,
        )
        return made

    def run(self, session: Any, program: str) -> str:
        done = session.run(program)
        if done.exit_code:
            raise RuntimeError(done.stderr[-300:])
        return str(done.stdout)


class RaySandbox:
    """Proven up to its refusal only: where this was written there is no mkfs.erofs 1.7, and no
    runsc that knows EROFS."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from ray.experimental.sandbox import GVisorSandboxBackend, ImageManager
        from ray.experimental.sandbox._internal.image_utils import require_mkfs_erofs
        from ray.experimental.sandbox.config import SandboxConfig

        require_mkfs_erofs()  # it would say so only after half a gigabyte was packed
        folder = Path(settings["folder"])
        archive = folder / "root.tar"
        subprocess.run(["tar", "-cf", archive, "-C", settings["root"], "."], check=True)
        images = ImageManager(images_dir=str(folder / "images"))
        images.pull_image(str(archive))
        self._python = settings["python"]
        self._backend = GVisorSandboxBackend(image_manager=images)
        self._config = SandboxConfig(
            image=str(archive),
            cpu=settings["cpu"],
            memory=settings["memory"],
            env=settings["environment"],
            timeout_seconds=CREATION_TIMEOUT,
            rootless=os.geteuid() != 0,
        )

    @contextmanager
    def session(self) -> Iterator[Any]:
        name = self._backend.create_sandbox(self._config)
        try:
            yield name
        finally:
            self._backend.delete_sandbox(name)

    def run(self, session: Any, program: str) -> str:
        done = self._backend.exec_command(session, [self._python, "-c", program])
        if done.exit_code:
            raise RuntimeError(done.stderr[-300:])
        return str(done.stdout)


KINDS: dict[str, Callable[[dict[str, Any]], Rival]] = {
    "llm-sandbox": lambda settings: LlmSandbox(settings, interactive=False),
    "llm-sandbox-interactive": lambda settings: LlmSandbox(settings, interactive=True),
    "ray": RaySandbox,
}


def main() -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # whatever it prints is not an answer

    def say(**words: Any) -> None:
        print(json.dumps(words), file=out, flush=True)

    with ExitStack() as stack:
        try:
            rival: Rival = KINDS[sys.argv[1]](json.loads(sys.argv[2]))
            warm: Any = None
            say(ready=True)
            for line in sys.stdin:
                question = json.loads(line)
                answers, taken = [], []
                if question["do"] == "first":
                    started = time.perf_counter()
                    with rival.session() as session:
                        answers.append(rival.run(session, question["program"]))
                        taken.append(time.perf_counter() - started)
                else:
                    warm = warm or stack.enter_context(rival.session())
                    for _ in range(question["count"]):
                        started = time.perf_counter()
                        answers.append(rival.run(warm, question["program"]))
                        taken.append(time.perf_counter() - started)
                say(answers=answers, taken=taken)
        except Exception as error:
            words = str(error).strip().split("\n")[0].split(". ")[0]
            say(unable=words or type(error).__name__)


if __name__ == "__main__":
    main()
