"""The options of `divingbell chat`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from divingbell.errors import InvalidInput
from divingbell.surfaces.cli.options import SandboxOptions

if TYPE_CHECKING:
    from divingbell.settings.agent import AgentSettings
    from divingbell.settings.config import Settings

_MODEL = Group("Model", sort_key=5)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChatOptions(SandboxOptions):
    """What can be said of a conversation before it begins."""

    question: Annotated[
        str | None,
        Parameter(
            name=["--print", "-p"],
            help="Answer this question and end. Piped input is a file for the code.",
            metavar="QUESTION",
        ),
    ] = None
    json: Annotated[
        bool,
        Parameter(negative=(), help="With --print: print the answer as one JSON object."),
    ] = False
    demo: Annotated[
        bool,
        Parameter(negative=(), help="Play a recorded conversation: its code is really run."),
    ] = False
    resume: Annotated[
        str | None,
        Parameter(
            help="Go on with a conversation: the start of its name, or nothing for the last one.",
            metavar="[NAME]",
        ),
    ] = None
    acp: Annotated[
        bool,
        Parameter(negative=(), help="Be the agent of an editor, over stdin and stdout (ACP)."),
    ] = False
    no_save: Annotated[
        bool, Parameter(negative=(), help="Keep nothing: neither the conversation nor the history.")
    ] = False
    reveal: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Print real values in place of tokens although stdout is no terminal.",
        ),
    ] = False
    privacy: Annotated[
        Literal["off", "secrets", "personal"] | None,
        Parameter(
            help="What the model does not see: secrets, personal (personal data, too), or off "
            "[default: personal].",
            group=_MODEL,
        ),
    ] = None
    model: Annotated[
        str | None,
        Parameter(
            help="The model, as provider:model [default: by the keys that are there].",
            group=_MODEL,
            metavar="NAME",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        Parameter(
            help="Where it is asked: Ollama, vLLM, llama.cpp and others. No key is sent there but "
            "that of --key-variable.",
            group=_MODEL,
            metavar="URL",
        ),
    ] = None
    key_variable: Annotated[
        str | None,
        Parameter(
            help="The variable that has the key for --base-url.", group=_MODEL, metavar="NAME"
        ),
    ] = None

    def check(self) -> None:
        """Refuse what excludes each other.

        Raises:
            InvalidInput: something does.
        """
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise InvalidInput("--base-url is an address that begins with http:// or https://")
        if self.question is not None and not self.question.strip():
            raise InvalidInput('the question is empty: --print "…"')
        if self.json and self.question is None:
            raise InvalidInput('--json needs a question: --print "…"')
        given = {
            "--demo": self.demo,
            "--print": self.question is not None,
            "--acp": self.acp,
        }
        if len(both := [name for name, is_given in given.items() if is_given]) > 1:
            raise InvalidInput(f"{' and '.join(both)} exclude each other: leave one of them out")
        if self.resume is not None and (self.no_save or self.demo or self.acp):
            raise InvalidInput("--resume is for conversations that are kept, at the terminal")

    @property
    def keeps(self) -> bool:
        """Whether the conversation is kept: one question is none, unless it goes on with one."""
        if self.resume is not None:
            return True
        return not (self.no_save or self.demo or self.question is not None)

    def applied(self, settings: "Settings") -> "Settings":
        """Return the settings for a conversation."""
        return replace(
            settings,
            privacy=self.privacy or settings.privacy or "personal",
            skills=settings.skills or "on",
            agent=self._agent(settings.agent),
        )

    def _agent(self, agent: "AgentSettings") -> "AgentSettings":
        changes: dict[str, Any] = {}
        if self.model is not None:
            changes["model"] = self.model
            if _provider(self.model) != _provider(agent.model):
                changes |= {"base_url": "", "key_variable": ""}  # those of another one
        if self.base_url is not None:
            changes |= {"base_url": self.base_url, "key_variable": ""}
        if self.key_variable is not None:
            changes["key_variable"] = self.key_variable
        return replace(agent, **changes)


def _provider(model: str) -> str:
    return model.partition(":")[0]


@dataclass(frozen=True)
class Paths:
    """The files and folders that a conversation is about."""

    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    @classmethod
    def of(cls, paths: tuple[Path, ...]) -> "Paths":
        """Tell files from folders.

        Raises:
            InvalidInput: there is no such file or folder, or two have the same name.
        """
        for path in paths:
            if not path.exists():
                raise InvalidInput(f"there is no file or folder {path}")
        names = [path.resolve().name for path in paths]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidInput(f"two of them are called {twice}: name the folder above them")
        return cls(
            tuple(path for path in paths if not path.is_dir()),
            tuple(path.resolve() for path in paths if path.is_dir()),
        )
