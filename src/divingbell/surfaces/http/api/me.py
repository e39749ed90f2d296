"""`me`: who the token is of, and what the server has."""

from importlib.metadata import version

from starlette.types import ASGIApp

from divingbell.surfaces.http.answers import as_json
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.wire import Features, Me, Nothing

VERSION = version("divingbell")  # it is in a file: 2 ms each time


async def me(call: Call, given: Nothing) -> ASGIApp:
    """Say who the token is of, and what it lets its user do."""
    settings = call.service.bell.settings
    features = Features(
        conversations=call.service.conversations.are_possible,
        skills=settings.skills == "on",
        audit=settings.audit not in (None, "off"),
    )
    return as_json(
        Me(
            user=call.visitor.user,
            scopes=sorted(call.visitor.scopes),
            version=VERSION,
            backend=settings.backend,
            privacy=settings.privacy_rules.word_for(call.visitor.user, settings.privacy),
            features=features,
        )
    )


OPERATIONS = (Operation("GET", "/me", "read", me, answers=Me),)
