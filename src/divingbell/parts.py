"""The parts of a Divingbell, each made of its settings: folders, gateway, backend."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell import logs
from divingbell.border.border import Border, OpenBorder
from divingbell.border.masked_values import MaskedValues
from divingbell.errors import ProfileError
from divingbell.gateway import spooled_tables
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.policy import pins as gateway_pins
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.shared import SharedParts
from divingbell.gateway.upstream.fleet import Listener, MakeUpstream
from divingbell.gateway.upstream.transport import orphan_groups
from divingbell.host import owned_folder, places, profile
from divingbell.host.folders import HostFolders
from divingbell.journal.journal import Journal
from divingbell.review.reviewer import Reviewer
from divingbell.sandbox import registry
from divingbell.sandbox.auto import AutoBackend
from divingbell.sandbox.base import Backend, BackendRequest
from divingbell.session.needs import Needs
from divingbell.settings.config import Settings
from divingbell.settings.kinds import VALUE
from divingbell.settings.privacy import Privacy, PrivacyRules, check_flows
from divingbell.settings.servers import Server
from divingbell.skills.questions import SkillQuestions, SkillServices, refuse
from divingbell.skills.recordings import Recordings
from divingbell.skills.sharing import Sharing
from divingbell.skills.skills import Skills
from divingbell.skills.store import FOLDER_NAME, Stores
from divingbell.skills.trial import RunApart, Trials
from divingbell.skills.uses import Uses

if TYPE_CHECKING:
    from divingbell.border.vault.vault import Vaults
    from divingbell.gateway.search.embeddings import Embeddings
    from divingbell.gateway.upstream.base import UpstreamConnection

log = logs.logger("divingbell")

GROUPS, SPOOLS = "groups", "spools"


class Home:
    """The folders of one running Divingbell that others must be able to look into."""

    def __init__(self) -> None:
        above = profile.home() / "running"
        try:
            owned_folder.make(above.parent)  # all that is kept there is kept below it
            self._folders = HostFolders(
                above, lambda left: orphan_groups.end_orphans(left / GROUPS)
            )
            self.servers = Folder(self._folders.path / "servers")
            self.process_groups = orphan_groups.ProcessGroups(self._folders.path / GROUPS)
        except owned_folder.NotOurs:
            raise
        except OSError as error:
            raise ProfileError(
                f"{above} can't be used: {error.strerror}. "
                "Free some space or permit writing there, or set DIVINGBELL_HOME to another folder."
            ) from error

    def spool(self, server: str) -> Path:
        """Return the folder in which our own dataset server leaves tables as files."""
        path = self._folders.path / SPOOLS / server
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def abandon(self) -> None:
        """Close it where nobody has ended the servers."""
        orphan_groups.end_orphans(self._folders.path / GROUPS)
        self.close()

    def close(self) -> None:
        self.servers.close()
        self._folders.close()


def dataset_server(server: Server, spool: Path, settings: Settings) -> Server:
    """Return the entry of a dataset server with what this process has to tell it."""
    told = {spooled_tables.VARIABLE: str(spool), "DIVINGBELL_HOME": str(profile.home())}
    if settings.privacy in ("secrets", "personal") or settings.privacy_rules.users:
        (spool / spooled_tables.RULES).write_text(_rules_on_fields(server.name, settings))
    return replace(server, args=(*server.args, "--backend", registry.wall_of(settings)), env=told)


def _rules_on_fields(server: str, settings: Settings) -> str:
    """Return which fields hold what is to be learned, for our own dataset server."""
    from divingbell.border.privacy.choosing import KINDS_OF, chosen_fields

    rules = settings.privacy_rules
    # Of those that some user has: who has fewer learns nothing of the others.
    privacy = "personal" if rules.users else settings.privacy or "off"
    kinds = sorted(KINDS_OF[privacy] | rules.patterns.keys())
    fields = dict(chosen_fields(privacy, rules))
    return json.dumps({"server": server, "fields": fields, "kinds": kinds})


def upstreams_of(settings: Settings, home: Home, scratch: Path | None = None) -> MakeUpstream:
    """Return what connects to servers from this process; with `scratch` it remembers nothing."""

    def make_upstream(
        server: Server,
        on_tools: Listener,
        on_changed: Listener,
        on_state: Listener,
        session: str | None,
    ) -> "UpstreamConnection":
        # Here, because the SDK takes most of a second to load and many have no servers.
        from divingbell.gateway.sign_in.oauth import Credentials
        from divingbell.gateway.upstream.tool_list_cache import ToolListCache
        from divingbell.gateway.upstream.upstream import Upstream

        spool = None
        if server.datasets is not None:
            spool = home.spool(server.name)
            server = dataset_server(server, spool, settings)
        return Upstream(
            server,
            on_tools=on_tools,
            on_changed=on_changed,
            on_state=on_state,
            log_folder=(scratch or profile.home()) / "logs",
            tool_list_cache=None if scratch else ToolListCache(profile.home() / "tool-lists"),
            credentials=None if scratch else Credentials(),
            process_groups=home.process_groups,
            spool=spool,
        )

    return make_upstream


def _shared_upstreams(shared: SharedParts, own: MakeUpstream) -> MakeUpstream:
    """Return what has connections kept elsewhere, but for our own dataset servers: those have no
    secret, and leave tables as files of this machine."""

    def make_upstream(
        server: Server,
        on_tools: Listener,
        on_changed: Listener,
        on_state: Listener,
        session: str | None,
    ) -> "UpstreamConnection":
        make = shared.upstream if server.datasets is None else own
        return make(server, on_tools, on_changed, on_state, session)

    return make_upstream


def kept_pins() -> gateway_pins.Pins:
    """Return the definitions of tools that were seen from this machine before.

    Raises:
        ConfigError: the file with them can't be used.
    """
    return gateway_pins.Pins(places.data_folder() / gateway_pins.FILE_NAME)


def make_gateway(
    settings: Settings,
    home: Home,
    journal: Journal,
    border: Border,
    on_approval: Approver | None = None,
    scratch: Path | None = None,
    shared: SharedParts | None = None,
) -> Gateway:
    """Return the gateway, which has no servers yet; with `scratch` it remembers nothing.

    `shared` is what it has in common with the gateways of other processes.

    Raises:
        ConfigError: search by meaning was asked for, and is not there.
    """
    make_upstream = upstreams_of(settings, home, scratch)
    if shared is not None:
        make_upstream = _shared_upstreams(shared, make_upstream)
    is_pinned = settings.policy.pin and scratch is None and shared is None
    pins = kept_pins() if is_pinned else gateway_pins.Pins(None)
    return Gateway(
        settings.policy,
        home.servers,
        pins,
        make_upstream,
        journal,
        border,
        on_approval,
        _embeddings_loader(settings) if settings.servers else None,
        shared,
    )


async def make_border(
    settings: Settings, undo: AsyncExitStack, scratch: Path | None = None
) -> Border:
    """Return the border that the settings ask for, with its vault open; `undo` closes that.

    With `scratch` the vault is in memory, and so it is where the usual place can't be written to.

    Raises:
        ConfigError: the rules can't be used, or the vault has another key.
    """
    privacy, rules = settings.privacy or "off", settings.privacy_rules
    check_flows(privacy, settings.policy.flow)
    if privacy == "off" and not rules.users:
        if rules != PrivacyRules():
            log.warning(
                "[privacy_rules] has no effect, because nothing is hidden here: "
                'privacy = "secrets" or "personal" turns it on'
            )
        return OpenBorder()
    # Here, because most have no use for it: hyperscan and cryptography take a tenth of a second.
    from divingbell.border.border_by_user import BorderByUser
    from divingbell.border.privacy.blotter import BLOTTER
    from divingbell.border.vault import opening

    # What is told of the vault goes to the log, which must be able to read it.
    await asyncio.to_thread(BLOTTER.make().join)
    if scratch is None:
        vaults = await opening.opened(settings.vault, places.data_folder())
    else:
        vaults = await opening.opened_in_memory(settings.vault)
    undo.push_async_callback(vaults.close)
    masked = MaskedValues()
    words: set[Privacy] = {privacy, "personal"} if rules.users else {privacy}
    borders = {word: await _border_of(word, rules, vaults, masked) for word in words}
    if len(borders) == 1:
        return borders[privacy]
    return BorderByUser(lambda user: borders[rules.word_for(user, privacy)], masked)


async def _border_of(
    privacy: Privacy, rules: PrivacyRules, vaults: "Vaults", masked: MaskedValues
) -> Border:
    """Return the border of those for whom this word counts."""
    if privacy == "off":
        return OpenBorder()
    from divingbell.border.conversation import no_shapes
    from divingbell.border.privacy.choosing import KINDS_OF, chosen_fields, make_scanner
    from divingbell.border.privacy.fields import Fields
    from divingbell.border.privacy_border import PrivacyBorder

    kinds = KINDS_OF[privacy] | rules.patterns.keys()
    if rules.analyzer:
        kinds |= {VALUE}  # what it could not read is held back as one
    scanner = await asyncio.to_thread(make_scanner, privacy, rules)
    await asyncio.to_thread(no_shapes)  # else the first conversation makes it, and all others wait
    fields = Fields(chosen_fields(privacy, rules), kinds)
    return PrivacyBorder(vaults, scanner, kinds, fields, rules, masked)


async def make_audit(
    settings: Settings,
    journal: Journal,
    border: Border,
    undo: AsyncExitStack,
    scratch: Path | None = None,
) -> None:
    """Have the audit log that the settings ask for keep what the journal tells; `undo` closes it.

    With `scratch` there is none: that is for those who leave no trace.

    Raises:
        ConfigError: the settings can't be used, or what they require is not there.
    """
    if settings.audit in (None, "off") or scratch is not None:
        return
    from divingbell.audit import opening

    log = await opening.opened(settings, border, places.data_folder())
    undo.push_async_callback(log.close)
    undo.callback(journal.keep(log))


def open_skills(
    settings: Settings, journal: Journal, undo: AsyncExitStack, scratch: Path | None = None
) -> Skills:
    """Return the skills; where the settings have them on, their uses are counted until `undo`.

    With `scratch` they are kept there.
    """
    stores = Stores((scratch or places.data_folder()) / FOLDER_NAME)
    if settings.skills == "on":
        uses = Uses(stores)
        undo.push_async_callback(uses.close)
        undo.callback(journal.watch(uses.take))
    data, reviewer = scratch or places.data_folder(), Reviewer(settings.review)
    sharing = Sharing(data, stores, reviewer, settings.limits)
    return Skills(stores, journal.note, sharing, intend=journal.intend)


def offer_skills(
    settings: Settings,
    skills: Skills,
    gateway: Gateway,
    border: Border,
    journal: Journal,
    run: RunApart,
    undo: AsyncExitStack,
) -> None:
    """Have the gateway answer what code asks about skills: that there are none, where they are off.

    `run` runs their examples.
    """
    if settings.skills != "on":
        refuse(gateway)
        return
    recordings = Recordings()
    trials = Trials(gateway, border, recordings, run)
    reviewer = Reviewer(settings.review)
    services = SkillServices(gateway, border, reviewer, settings.limits, skills, trials, journal)
    questions = SkillQuestions(services)
    questions.register()
    undo.callback(journal.watch(recordings.take))
    skills.tester = questions.test
    undo.callback(journal.watch(questions.take))


def _embeddings_loader(settings: Settings) -> Callable[[], "Embeddings"] | None:
    """Return what loads the model for search by meaning, where it is wanted.

    Raises:
        ConfigError: it was asked for, and is not there.
    """
    if settings.search == "words":
        return None
    from divingbell.gateway.search import embeddings
    from divingbell.gateway.search.encoders import minilm, onnx

    model = Path(settings.search_model) if settings.search_model else None
    if settings.search == "meaning":
        loaded = embeddings.load(model=model)
        return lambda: loaded
    if model is not None:
        onnx.check(model)
    elif not minilm.is_installed():
        return None
    return lambda: embeddings.load(model=model)


def make_backend(
    settings: Settings,
    progress: Callable[[str], None],
    servers: Path,
    needs: Needs | None,
) -> Backend:
    """Return the backend that the settings name, not started yet."""

    def make(row: registry.Row) -> Backend:
        chosen = replace(settings, backend=row.name)
        if needs is not None and row.preloads_what_is_needed:
            chosen = replace(chosen, preload=needs.modules)
        request = BackendRequest(
            name=row.name,
            settings=chosen,
            progress=progress,
            servers=servers,
            many=needs is None,
        )
        return registry.make(row, request)

    if settings.backend == registry.AUTO:
        return AutoBackend(settings, make, progress)
    return make(registry.find(settings.backend))


@asynccontextmanager
async def gateway_alone(
    settings: Settings, journal: Journal | None = None
) -> AsyncIterator[Gateway]:
    """Open the gateway without a sandbox, for those who only want to look at the servers."""
    home = Home()
    try:
        gateway = make_gateway(
            replace(settings, search="words"), home, journal or Journal(), OpenBorder()
        )
        try:
            gateway.fleet.start(settings.servers, lazy=False)
            yield gateway
        finally:
            await gateway.stop()
    finally:
        home.close()
