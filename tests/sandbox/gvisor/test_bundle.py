from pathlib import Path

from divingbell.models import Limits
from divingbell.sandbox.gvisor import bundle


def test_no_program_inherits_what_the_first_process_may() -> None:
    described = bundle.describe(Path("/root-of-it"), Path("/socket"), "token", Limits(), {})
    process = described["process"]
    assert process["noNewPrivileges"]
    assert not {"inheritable", "ambient"} & set(process["capabilities"])


def test_the_root_is_read_only_and_what_is_shown_too() -> None:
    described = bundle.describe(
        Path("/root-of-it"), Path("/socket"), "t", Limits(), {"/data": "/d"}
    )
    assert described["root"]["readonly"]
    binds = [mount for mount in described["mounts"] if mount["type"] == "bind"]
    assert {mount["destination"] for mount in binds} == {"/run/divingbell", "/data"}
    assert all("ro" in mount["options"] for mount in binds)
