import json

import pytest

from divingbell.sandbox.docker import seccomp
from divingbell_inside.seccomp import ALLOWED, BY_ARGUMENT
from divingbell_inside.syscalls import NUMBERS


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_call_is_allowed_that_the_local_backend_refuses(machine: str) -> None:
    profile = json.loads(seccomp.profile(machine))
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO" and profile["defaultErrnoRet"] == 38
    freely, conditionally, refused = set(), set(), set()
    for rule in profile["syscalls"]:
        if rule["action"] != "SCMP_ACT_ALLOW":
            refused |= set(rule["names"])
        elif rule.get("args"):
            conditionally |= set(rule["names"])
        else:
            freely |= set(rule["names"])
    # prctl is free until the supervisor has installed the filter of the local backend.
    assert freely == (set(ALLOWED) & set(NUMBERS[machine])) | {"prctl"}
    assert conditionally <= set(BY_ARGUMENT) - {"prctl", "clone3"}
    assert refused.isdisjoint(freely | conditionally)
    assert freely | conditionally | refused | {"clone3"} == set(NUMBERS[machine])


def test_calls_can_be_denied_besides() -> None:
    profile = json.loads(seccomp.profile("x86_64", seccomp.INOTIFY))
    allowed, refused = profile["syscalls"][:2]
    assert not seccomp.INOTIFY & set(allowed["names"])
    assert set(refused["names"]) >= seccomp.INOTIFY and refused["errnoRet"] == 1
