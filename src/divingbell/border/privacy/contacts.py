"""Shapes of e-mail addresses, telephone numbers and IP addresses."""

import re

from divingbell.border.privacy import validators
from divingbell.border.privacy.shape import Shape

_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_EMAIL = Shape(
    "EMAIL",
    # The one sign that all have. What stands around it is looked at afterwards.
    gate=r"[^\s@]@[^\s@]",
    pattern=re.compile(
        # A whole domain, or the beginning of one that pandas has cut.
        rf"(?<=[\w.+\"'-])@(?:(?:{_LABEL}\.){{1,8}}(?:xn--[\w-]{{1,59}}|[^\W\d_]{{2,24}})(?![\w-])"
        r"|[\w.-]{0,60}?(?:\.\.\.|…))"
    ),
    longest=330,
    check=lambda match: (
        validators.is_email_domain(match[0][1:])
        and validators.is_personal_mailbox(match.string, match.start())
    ),
    backwards=re.compile(r"\"[^\"\n]{1,62}\"|[\w.+-]{1,64}(?:'\w{1,2}(?!\w))?"),
)

SHAPES = (_EMAIL,)
