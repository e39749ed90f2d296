"""The commands of `divingbell audit` and their options."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from divingbell.surfaces.cli.audit_options import AuditFilter
from divingbell.surfaces.cli.options import HostOptions

audit = App(
    name="audit",
    help="Read, verify and export the audit log: who ran and called what.",
    help_format="plaintext",
    help_epilogue="",
)


@audit.command(name="tail")
def tail_audit(
    *,
    lines: Annotated[
        int, Parameter(alias="-n", help="How many records [default: 20].", metavar="N")
    ] = 20,
    follow: Annotated[
        bool, Parameter(alias="-f", negative=(), help="Show those that come, too.")
    ] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print records as lines of JSON.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the newest records of all processes that write to this log."""
    from divingbell.surfaces.cli import audit

    return audit.tail(options.load(), lines, follow=follow, as_json=json)


@audit.command(name="search")
def search_audit(
    *,
    wanted: AuditFilter = AuditFilter(),  # noqa: B008
    json: Annotated[bool, Parameter(negative=(), help="Print records as lines of JSON.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the records that fit all that is given, the oldest first."""
    from divingbell.surfaces.cli import audit

    return audit.search(options.load(), wanted, as_json=json)


@audit.command(name="export")
def export_audit(
    *,
    format: Annotated[
        Literal["jsonl", "ocsf"],
        Parameter(help="jsonl, or ocsf for tools that read that schema [default: jsonl]."),
    ] = "jsonl",
    wanted: AuditFilter = AuditFilter(),  # noqa: B008
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Print the records that fit as lines of JSON, for other programs."""
    from divingbell.surfaces.cli import audit

    return audit.export(options.load(), wanted, as_ocsf=format == "ocsf")


@audit.command(
    name="verify",
    help_epilogue="Exit status: 1 if a part is changed, cut or unproven, 0 if all is whole, or "
    "torn by a crash at its end, 2 for wrong usage or configuration.",
)
def verify_audit(
    *,
    key: Annotated[
        str, Parameter(help="The public key [default: of the key in the settings].", metavar="KEY")
    ] = "",
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say whether the log is as it was written: each record, and that none is missing."""
    from divingbell.surfaces.cli import audit

    return audit.verify(options.load(), key, as_json=json)


@audit.command(name="head")
def show_audit_head(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the public key, and how far each part of the log is signed: to be kept elsewhere."""
    from divingbell.surfaces.cli import audit

    return audit.head(options.load(), as_json=json)
