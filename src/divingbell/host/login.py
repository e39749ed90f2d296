"""The login name: who runs this process, where nobody has said on whose behalf."""

import os
import pwd


def login_name() -> str:
    """Return the name of the account that this process runs as, by the kernel's word for it.

    `LOGNAME` and `USER` are not asked: whoever starts the process can set them to another's name.
    """
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"  # in a container it may be a number alone
