"""The principal: the user and conversation on whose behalf something is done."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, the conversation that something belongs to, and the way in.

    Sessions, budgets, approvals and ledgers belong to one. No two users share anything, whatever
    their conversations are called.
    """

    user: str = ""
    """The name of the user: of the token over HTTP, the login name over stdio and for commands, and
    whatever a program says. Any text, which is compared and never becomes a path. Empty where a
    program names nobody: no name that somebody chose, not that of an account either, reaches what
    is the program's own."""
    conversation: str = ""
    """A name that keeps one conversation of a user from another: a connection of a client, or the
    key of a session. Empty where a client has no connections: then all of the user's is one."""
    client: str = ""
    """The way in: library, stdio or http."""
