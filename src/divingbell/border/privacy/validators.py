"""Small checks that say whether a text that looks like a value is one."""

FILE_ENDINGS = frozenset(
    "png jpg jpeg gif svg webp ico css js ts json html htm py md txt log service socket timer "
    "mount target slice conf yaml yml toml lock zip gz".split()
)
"""Endings of names such as logo@2x.png and getty@tty1.service, none of them a domain of the top."""
MACHINE_MAILBOXES = ("git", "hg", "svn")
"""Users of addresses such as git@github.com:x/y.git, which are no mailboxes."""


def is_email_domain(domain: str) -> bool:
    """Say whether that may follow the @ of an e-mail address; it may be cut: `cust...`."""
    if domain.endswith(("...", "…")):
        return domain[0] not in ".…"
    labels = domain.lower().split(".")
    is_version = labels[0].isdecimal() and labels[1].isdecimal()
    return labels[-1] not in FILE_ENDINGS and not is_version


def is_personal_mailbox(text: str, at: int) -> bool:
    """Say whether a person may read what is sent to the name before this @."""
    for name in MACHINE_MAILBOXES:
        start = at - len(name)
        if text.startswith(name, max(0, start)) and start >= 0:
            return start > 0 and (text[start - 1].isalnum() or text[start - 1] in "._+-")
    return True
