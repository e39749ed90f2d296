"""The commands of `divingbell skills` and their options. What they do is in `skills`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from divingbell.host.login import login_name
from divingbell.surfaces.cli.options import HostOptions

Name = Annotated[str, Parameter(help="The skill, such as top-customers.")]
Key = Annotated[
    str, Parameter(help="The publisher's key, if they have told you of it.", metavar="KEY")
]
Yes = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Do not ask, where the key is known and nothing has to be decided, or with --sha256.",
    ),
]
YesToUpdates = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Do not ask: install what has nothing to be decided, and say what has.",
    ),
]
User = Annotated[
    str | None,
    Parameter(
        help="Whose skills they are [default: yours, by your login name, as in serve over stdio].",
        metavar="NAME",
    ),
]
Version = Annotated[
    int | None, Parameter(help="The version [default: the one that is offered].", metavar="N")
]
Json = Annotated[bool, Parameter(negative=(), help="Print one JSON object.")]


def _named(user: str | None) -> str:
    return login_name() if user is None else user


skills = App(
    name="skills",
    help="Look after skills: code that was found useful, kept and offered to code again.",
    help_format="plaintext",
    help_epilogue="",
)


@skills.command(name="list")
def list_skills(*, user: User = None, json: Json = False) -> int:
    """List the skills, with what they are worth: uses, how many went well, and tokens saved.

    Nothing of a skill is run.
    """
    from divingbell.surfaces.cli import skills

    return skills.show_all(_named(user), as_json=json)


@skills.command(name="search")
def search_skills(
    words: Annotated[list[str], Parameter(help="What it does, in words.")],
    /,
    *,
    user: User = None,
    json: Json = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Find skills by what they do, the best first. Nothing of a skill is run."""
    from divingbell.surfaces.cli import skills
    from divingbell.surfaces.cli.terminal import signals

    query, settings = " ".join(words), options.load()
    return signals.run(lambda _: skills.search(query, _named(user), settings, as_json=json))


@skills.command(name="show")
def show_skill(
    name: Name, /, *, version: Version = None, user: User = None, json: Json = False
) -> int:
    """Show a skill: its SKILL.md, its files, its versions, and where it comes from."""
    from divingbell.surfaces.cli import skills

    return skills.show(name, version, _named(user), as_json=json)


@skills.command(name="test")
def test_skill(
    name: Name,
    /,
    *,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Run the example of a skill in a fresh session, with the real tools, under all rules.

    One that went well is offered again, also where a tool of it had changed.
    """
    from divingbell.surfaces.cli import skill_test
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: skill_test.run(name, _named(user), settings))


@skills.command(name="add")
def add_skill(
    folder: Annotated[Path, Parameter(help="The folder with SKILL.md.")],
    /,
    *,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Keep the skill in a folder as a new version, which is offered from now on. It is not run."""
    from divingbell.surfaces.cli import skills
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: skills.add(folder, _named(user), settings))


@skills.command(name="import")
def import_skills(
    folder: Annotated[
        Path, Parameter(help="A folder with skills of another agent, such as ~/.claude/skills.")
    ],
    /,
    *,
    skip_bad: Annotated[
        bool, Parameter(negative=(), help="Leave out what is no skill, and say why.")
    ] = False,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Take over all skills in a folder as they are, or none of them. None is run."""
    from divingbell.surfaces.cli import skills
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(
        lambda _: skills.take_over(folder, _named(user), settings, skip_bad=skip_bad)
    )


@skills.command(name="export")
def export_skill(
    name: Name,
    folder: Annotated[
        Path, Parameter(help="A folder, in which one of its name is made [default: the current].")
    ] = Path("."),
    /,
    *,
    version: Version = None,
    user: User = None,
) -> int:
    """Write a skill out as a folder in the Agent Skills format."""
    from divingbell.surfaces.cli import skills

    return skills.export(name, folder, version, _named(user))


@skills.command(name="rollback")
def roll_skill_back(
    name: Name,
    version: Annotated[
        int | None,
        Parameter(help="The version [default: the one before what is offered].", metavar="N"),
    ] = None,
    /,
    *,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Offer an earlier version of a skill again. The later ones are kept."""
    from divingbell.surfaces.cli import skills
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: skills.roll_back(name, version, _named(user), settings))


@skills.command(name="remove")
def remove_skill(
    name: Name,
    /,
    *,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Remove a skill with all its versions."""
    from divingbell.surfaces.cli import skills
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: skills.remove(name, _named(user), settings))


@skills.command(name="publish")
def publish_skill(
    name: Name,
    /,
    *,
    to: Annotated[str, Parameter(help="A folder, or the address of a git repository.")],
    version: Version = None,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Sign a skill with your key, and put it into a catalogue as its next version."""
    from divingbell.surfaces.cli import catalogues
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: catalogues.publish(name, to, version, _named(user), settings))


@skills.command(name="install")
def install_skill(
    name: Name,
    /,
    *,
    source: Annotated[
        str,
        Parameter(
            name="--from", help="The catalogue: a folder, or the address of a git repository."
        ),
    ],
    sha256: Annotated[
        str, Parameter(help="The digest that it must have, as it is shown.", metavar="DIGEST")
    ] = "",
    key: Key = "",
    yes: Yes = False,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show a skill of a catalogue, with its publisher's key and its review, and keep it if you
    agree. It is not run."""
    from divingbell.skills.sharing import Wanted
    from divingbell.surfaces.cli import catalogues
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    catalogues.check_key(key)
    wanted = Wanted(key, sha256)
    return signals.run(
        lambda _: catalogues.install(name, source, wanted, _named(user), settings, yes=yes)
    )


@skills.command(name="update")
def update_skills(
    name: Annotated[str, Parameter(help="The skill [default: all of catalogues].")] = "",
    /,
    *,
    yes: YesToUpdates = False,
    user: User = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Look for newer versions in the catalogues that skills were installed from."""
    from divingbell.surfaces.cli import catalogues
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: catalogues.update(name, _named(user), settings, yes=yes))
