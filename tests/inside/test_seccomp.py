"""The filter, judged by an interpreter of BPF for both machines and by the kernel for this one."""

import errno
import json
import os
import signal
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from divingbell_inside import seccomp
from divingbell_inside.syscalls import NUMBERS

SOURCE = Path(seccomp.__file__).parents[1]
MOBY = Path(__file__).parents[1] / "data" / "moby_seccomp_default.json"
MOBY_MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386, ARM = 0x40000003, 0x40000028
MACHINES = sorted(NUMBERS)
HERE = os.uname().machine

ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LOAD, AND, JUMP, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06

BY_ARGUMENT = {
    *("clone", "fcntl", "ioctl", "memfd_create", "mknod", "mknodat", "mmap"),
    *("personality", "prctl", "socket", "socketpair"),
}
# What Docker allows without capabilities and Divingbell does not.
WITHDRAWN = {
    *("adjtimex", "clock_adjtime", "epoll_ctl_old", "epoll_wait_old", "fanotify_mark"),
    *("get_thread_area", "listmount", "memfd_secret", "modify_ldt", "name_to_handle_at"),
    *("process_vm_readv", "process_vm_writev", "ptrace", "seccomp", "set_thread_area"),
    *("statmount", "vmsplice"),
    # What they make stays when its maker is gone, and so does the memory that it takes.
    *("msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop"),
    *("shmat", "shmctl", "shmdt", "shmget"),
    # These write out what everyone on the machine has written; fsync does for the own files.
    *("sync", "syncfs"),
    # Contexts for these are counted for the whole machine: one session could take all.
    *("io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit"),
}
FORBIDDEN = """
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise mount umount2
    pivot_root chroot fsopen fsconfig fsmount fspick open_tree open_tree_attr move_mount
    mount_setattr statmount listmount listns setns unshare open_by_handle_at name_to_handle_at
    keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter
    io_uring_register kexec_load kexec_file_load init_module finit_module delete_module swapon
    swapoff reboot acct quotactl quotactl_fd iopl ioperm settimeofday clock_settime adjtimex
    clock_adjtime sethostname setdomainname syslog fanotify_init fanotify_mark vmsplice
    memfd_secret modify_ldt seccomp mbind set_mempolicy set_mempolicy_home_node get_mempolicy
    move_pages migrate_pages lookup_dcookie nfsservctl vhangup lsm_set_self_attr file_setattr
"""
INTERESTING = [
    *range(48),
    *(0x5412, 0x541C, 0x5423, 0x5401, 0x20000, 0x20008, 0xFFFFFFFF, 0x7E020000, 0x003D0F00),
    *(bit << 12 for bit in range(16)),
    *(1 << bit for bit in range(17, 32)),
]


@cache
def instructions_of(program: bytes) -> list[tuple[int, int, int, int]]:
    return [
        (code, yes, no, constant)
        for code, yes, no, constant in struct.iter_unpack("<HBBI", program)
    ]


def decide(
    program: bytes, architecture: int, number: int, *arguments: int
) -> tuple[int, set[int], int]:
    """Run the filter as the kernel does: its answer, the offsets it has read, the steps it took."""
    padded = [value & (1 << 64) - 1 for value in (*arguments, *[0] * 6)][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *padded)
    instructions = instructions_of(program)
    position = accumulator = steps = 0
    read: set[int] = set()
    while True:
        code, if_true, if_false, constant = instructions[position]
        position += 1
        steps += 1
        if code == LOAD:
            accumulator = struct.unpack_from("<I", data, constant)[0]
            read.add(constant)
        elif code == AND:
            accumulator &= constant
        elif code == JUMP:
            position += constant
        elif code == EQUAL:
            position += if_true if accumulator == constant else if_false
        elif code == AT_LEAST:
            position += if_true if accumulator >= constant else if_false
        else:
            assert code == RETURN, f"not among the codes the kernel can work out beforehand: {code}"
            return constant, read, steps


@cache
def program_for(machine: str) -> bytes:
    return seccomp.build(machine)


def answer(machine: str, name: str, *arguments: int) -> int:
    number = NUMBERS[machine][name]
    return decide(program_for(machine), ARCHITECTURE[machine], number, *arguments)[0]


@cache
def moby_rules() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = json.loads(MOBY.read_text())["syscalls"]
    return [rule for rule in rules if rule["action"] == "SCMP_ACT_ALLOW"]


def moby_condition_holds(condition: dict[str, int | str], arguments: tuple[int, ...]) -> bool:
    given, value = arguments[int(condition["index"])], int(condition["value"])
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return given == value
        case "SCMP_CMP_LT":
            return given < value
        case "SCMP_CMP_GT":
            return given > value
        case "SCMP_CMP_MASKED_EQ":
            return given & value == condition.get("valueTwo", 0)
    raise AssertionError(condition)


def moby_allows(machine: str, name: str, arguments: tuple[int, ...]) -> bool:
    """What Docker's default profile says to a process without capabilities."""
    for rule in moby_rules():
        includes, excludes = rule.get("includes", {}), rule.get("excludes", {})
        if name not in rule["names"] or "caps" in includes:
            continue
        if MOBY_MACHINE[machine] not in includes.get("arches", [MOBY_MACHINE[machine]]):
            continue
        if MOBY_MACHINE[machine] in excludes.get("arches", []):
            continue
        if all(moby_condition_holds(each, arguments) for each in rule.get("args", [])):
            return True
    return False


def argument_samples(name: str) -> list[tuple[int, ...]]:
    positions = range(3) if name in BY_ARGUMENT | {"clone3"} else range(1)
    return [
        tuple(value if position == at else 0 for position in range(6))
        for at in positions
        for value in INTERESTING
    ]


def test_the_table_gives_no_number_twice() -> None:
    for machine in MACHINES:
        assert len(set(NUMBERS[machine].values())) == len(NUMBERS[machine])


@pytest.mark.parametrize(
    ("name", "x86_64", "aarch64"),
    [
        ("read", 0, 63),
        ("mmap", 9, 222),
        ("clone", 56, 220),
        ("newfstatat", 262, 79),
        ("renameat", 264, 38),
        ("fcntl", 72, 25),
        ("umount2", 166, 39),
        ("wait4", 61, 260),
        ("seccomp", 317, 277),
        ("rseq", 334, 293),
        ("clone3", 435, 435),
        ("memfd_secret", 447, 447),
        ("mseal", 462, 462),
        ("file_setattr", 469, 469),
    ],
)
def test_numbers_are_the_kernels(name: str, x86_64: int, aarch64: int) -> None:
    assert (NUMBERS["x86_64"][name], NUMBERS["aarch64"][name]) == (x86_64, aarch64)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_is_as_tight_as_docker_or_tighter(machine: str) -> None:
    for name in NUMBERS[machine]:
        for arguments in argument_samples(name):
            decision = answer(machine, name, *arguments)
            assert decision in (ALLOW, EPERM, ENOSYS), name
            if decision == ALLOW:
                assert moby_allows(machine, name, arguments), (name, arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_only_the_named_calls_are_withdrawn_from_what_docker_allows(machine: str) -> None:
    withdrawn = {
        name
        for name in NUMBERS[machine]
        for samples in [argument_samples(name)]
        if any(moby_allows(machine, name, arguments) for arguments in samples)
        if all(answer(machine, name, *arguments) != ALLOW for arguments in samples)
    }
    assert withdrawn == WITHDRAWN & NUMBERS[machine].keys()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", FORBIDDEN.split())
def test_forbidden_calls_answer_eperm_whatever_the_arguments(machine: str, name: str) -> None:
    if name in NUMBERS[machine]:
        assert {answer(machine, name, *each) for each in argument_samples(name)} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_clone3_is_missing_so_that_libc_falls_back(machine: str) -> None:
    assert {answer(machine, "clone3", *each) for each in argument_samples("clone3")} == {ENOSYS}
    denied = seccomp.build(machine, deny=frozenset({"clone3"}))
    assert decide(denied, ARCHITECTURE[machine], 435)[0] == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_outside_the_table_are_missing(machine: str) -> None:
    known = set(NUMBERS[machine].values())
    for number in {*range(1024), 0x7FFFFFFF, 0x80000000, -1} - known:
        assert decide(program_for(machine), ARCHITECTURE[machine], number)[0] == ENOSYS, number


def test_x32_calls_are_missing() -> None:
    for number in range(1024):
        x32 = number | 0x40000000
        assert decide(program_for("x86_64"), ARCHITECTURE["x86_64"], x32)[0] == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_architecture_is_killed(machine: str) -> None:
    foreign = {I386, ARM, 0, *ARCHITECTURE.values()} - {ARCHITECTURE[machine]}
    for architecture in foreign:
        for number in range(512):
            assert decide(program_for(machine), architecture, number)[0] == KILL_PROCESS


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("high", [0, 0xDEADBEEF << 32])
@pytest.mark.parametrize(
    ("name", "before", "allowed", "forbidden"),
    [
        (
            "clone",
            (),
            [signal.SIGCHLD, 0x003D0F00, 0x4111, 0x80, 0xFF],
            [1 << bit | signal.SIGCHLD for bit in (17, 25, 26, 27, 28, 29, 30)],
        ),
        ("socket", (), [1], [0, *range(2, 48), 0xFFFFFFFF]),
        ("socketpair", (), [1], [0, *range(2, 48), 0xFFFFFFFF]),
        ("ioctl", (0,), [0x5401, 0x5413, 0x541B, 0x5421], [0x5412, 0x541C, 0x5423]),
        ("fcntl", (0,), [0, 1, 3, 6, 1025, 1030, 1031, 1032, 1033], [1024, 1026, 1040]),
        ("personality", (), [0, 8, 0x20000, 0x20008, 0xFFFFFFFF], [0x40000, 0x400000, 1, 9]),
        ("mknod", (0,), [0o644, 0o100644, 0o10600, 0o140600], [0o20600, 0o60600, 0o40600]),
        ("mknodat", (0, 0), [0o644, 0o100644, 0o10600, 0o140600], [0o20600, 0o60600, 0o120600]),
        ("mmap", (0, 1 << 21, 3), [0x1, 0x2, 0x21, 0x22, 0x4022], [0x40021, 0x40022, 0x54040022]),
        ("memfd_create", (0,), [0, 1, 2, 3], [4, 5, 0x54000005]),
        ("prctl", (), [1, 4, 15, 38, 0x53564D41], [22, 35]),
    ],
)
def test_arguments_decide(
    machine: str,
    high: int,
    name: str,
    before: tuple[int, ...],
    allowed: list[int],
    forbidden: list[int],
) -> None:
    if name not in NUMBERS[machine]:
        return
    for value in allowed:
        assert answer(machine, name, *before, high | value) == ALLOW, hex(value)
    for value in forbidden:
        assert answer(machine, name, *before, high | value) == EPERM, hex(value)


@pytest.mark.parametrize("machine", MACHINES)
def test_denied_names_answer_eperm_and_nothing_else_changes(machine: str) -> None:
    deny = frozenset({"memfd_create", "shmget", "shmat", "socket"})
    program = seccomp.build(machine, deny=deny)
    for name, number in NUMBERS[machine].items():
        for arguments in argument_samples(name):
            expected = EPERM if name in deny else answer(machine, name, *arguments)
            assert decide(program, ARCHITECTURE[machine], number, *arguments)[0] == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_a_filter_with_far_jumps_decides_the_same(machine: str) -> None:
    deny = frozenset(name for name, number in NUMBERS[machine].items() if number % 2)
    program = seccomp.build(machine, deny=deny - {"clone3"})
    if machine == "x86_64":  # aarch64 has too few calls to need one
        assert any(code == JUMP for code, *_ in instructions_of(program))
    for name, number in NUMBERS[machine].items():
        expected = EPERM if name in deny - {"clone3"} else answer(machine, name)
        assert decide(program, ARCHITECTURE[machine], number)[0] == expected, name


@pytest.mark.parametrize("machine", MACHINES)
def test_plain_answers_read_no_argument_so_the_kernel_can_cache_them(machine: str) -> None:
    for name in NUMBERS[machine].keys() - BY_ARGUMENT:
        number = NUMBERS[machine][name]
        read = decide(program_for(machine), ARCHITECTURE[machine], number)[1]
        assert read <= {0, 4}, name


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_is_small_and_shallow(machine: str) -> None:
    program = program_for(machine)
    assert len(program) // 8 < 256
    steps = [
        decide(program, ARCHITECTURE[machine], number)[2] for number in NUMBERS[machine].values()
    ]
    assert max(steps) <= 20


def test_unknown_machines_and_names_are_refused() -> None:
    with pytest.raises(ValueError, match="riscv64"):
        seccomp.build("riscv64")
    with pytest.raises(ValueError, match="shmgot"):
        seccomp.build("x86_64", deny=frozenset({"shmgot"}))
    # Known to one machine only: not a mistake on the other.
    seccomp.build("aarch64", deny=frozenset({"open"}))


def test_a_program_the_kernel_refuses_is_an_error() -> None:
    with pytest.raises(OSError, match="seccomp"):
        seccomp.install(b"")


# From here on the kernel decides.

filtered = pytest.mark.skipif(
    HERE not in NUMBERS or not sys.platform.startswith("linux"), reason="no filter for this machine"
)

PRELUDE = f"""
import ctypes, errno, os, sys
sys.path.insert(0, {str(SOURCE)!r})
from divingbell_inside import seccomp
from divingbell_inside.syscalls import NUMBERS
numbers = NUMBERS[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    answer = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return "ok" if answer >= 0 else errno.errorcode[ctypes.get_errno()]
assert libc.prctl(38, 1, 0, 0, 0) == 0
"""
INSTALL = "seccomp.install(seccomp.build(os.uname().machine))\n"


def run_filtered(body: str, install: str = INSTALL) -> subprocess.CompletedProcess[str]:
    # A session of its own: were the filter broken, vhangup would not reach our terminal.
    return subprocess.run(
        [sys.executable, "-I", "-c", PRELUDE + install + body],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )


def output_of(body: str, install: str = INSTALL) -> str:
    finished = run_filtered(body, install)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


@filtered
def test_the_kernel_forbids_every_call_that_the_interpreter_forbids() -> None:
    # Arguments of -1 would harm nothing even if a call got through. uprobe is never filtered
    # (Linux 6.18 lets it pass every filter) and ends a process that calls it by hand.
    forbidden = {
        name
        for name in NUMBERS[HERE].keys() - BY_ARGUMENT - {"uprobe"}
        if answer(HERE, name) == EPERM
    }
    body = f"for name in {sorted(forbidden)!r}: print(name, call(numbers[name], *[-1] * 6))"
    assert set(output_of(body).splitlines()) == {f"{name} EPERM" for name in forbidden}
    assert len(forbidden) > 60


@filtered
def test_the_kernel_decides_by_arguments() -> None:
    body = """
import socket
print(call(numbers["clone3"], 0, 0))
print(call(numbers["clone"], 0x10000000 | 17, 0, 0, 0, 0))
print(call(9999), call(0x40000000 | 39))
for family in (2, 10, 16, 17, 38, 40, 44):
    print(family, *(call(numbers[name], family, 1, 0, 0) for name in ("socket", "socketpair")))
print(call(numbers["prctl"], 22, 2, 0), call(numbers["prctl"], 35, 0, 0))
print(call(numbers["personality"], 0x40000), call(numbers["personality"], 0xFFFFFFFF))
a, b = os.openpty()
print(*(call(numbers["ioctl"], b, high | request, 0)
        for request in (0x5412, 0x541C, 0x5423) for high in (0, 1 << 40)))
print(os.isatty(b))
for kind in (0o20000, 0o60000):
    try:
        os.mknod("/tmp/divingbell-device", kind | 0o600, os.makedev(1, 3))
    except PermissionError as error:
        print(errno.errorcode[error.errno])
"""
    families = [f"{family} EPERM EPERM" for family in (2, 10, 16, 17, 38, 40, 44)]
    assert output_of(body).splitlines() == [
        *("ENOSYS", "EPERM", "ENOSYS ENOSYS"),
        *families,
        *("EPERM EPERM", "EPERM ok", " ".join(["EPERM"] * 6), "True", "EPERM", "EPERM"),
    ]


@filtered
def test_a_denied_call_is_forbidden_for_real() -> None:
    install = (
        "seccomp.install(seccomp.build(os.uname().machine, "
        "deny=frozenset({'memfd_create', 'shmget', 'shmat'})))\n"
    )
    body = "print(*(call(numbers[name], 0, 0, 0) for name in ('memfd_create', 'shmget', 'shmat')))"
    assert output_of(body, install) == "EPERM EPERM EPERM"


@filtered
def test_the_filter_is_seen_in_the_status_and_inherited() -> None:
    body = """
import subprocess
print(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout)
"""
    status = dict(line.split(":\t", 1) for line in output_of(body).splitlines() if ":\t" in line)
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


@pytest.mark.skipif(HERE != "x86_64", reason="int 0x80 is an instruction of x86")
def test_a_32_bit_call_ends_the_process() -> None:
    body = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, 20 (getpid); int 0x80; ret
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print("survived", function())
"""
    # A kernel without 32-bit calls at all faults on the instruction.
    assert run_filtered(body).returncode in (-signal.SIGSYS, -signal.SIGSEGV)


PROBE_PREAMBLE = """
def safe(*_): print("SAFE")
def unsafe(*what): print("UNSAFE", *what)
def deny(attempt):
    try: answer = attempt()
    except BaseException: safe()
    else: unsafe(answer)
_l = libc
def sc(number, *arguments):
    answer = call(number, *arguments)
    (safe if answer in ("EPERM", "ENOSYS", "EACCES") else unsafe)(number, answer)
"""
# The probes of group K that concern this filter; the others are about users and namespaces.
PROBES = {
    "K01 ptrace": """
import time, signal
child = os.fork()
if child == 0:
    time.sleep(5); os._exit(0)
answer = _l.ptrace(16, child, 0, 0); error = ctypes.get_errno()
os.kill(child, signal.SIGKILL)
(safe if answer != 0 and error == errno.EPERM else unsafe)(answer, error)
""",
    "K03 keyctl": "sc(250,0,0,0,0,0)",
    "K07 perf_event_open": "sc(298,0,0,0,0,0)",
    "K10 pivot_root": "sc(155,0,0)",
    "K11 unshare": "sc(272,0x10000000)",
    "K13 open_by_handle_at": "sc(304,-1,0,0)",
    "K14 kexec_load": "sc(246,0,0,0,0)",
    "K15 init_module": "sc(175,0,0,0)",
    "K17 swapon": "sc(167,0,0)",
    "K18 fanotify_init": "sc(300,0,0)",
    "K19 fsopen": "sc(430,0,0)",
    "K20 pidfd_getfd": "sc(438,-1,0,0)",
    "K22 quotactl": "sc(179,0,0,0,0)",
    "K23 iopl": "sc(172,3)",
    "K24 settimeofday": "sc(164,1,0)",
    "K25 sethostname": "sc(170,1,1)",
    "K28 clone3": "sc(435,0,0)",
    "K30 x32": "sc(0x40000000|39)",
    "K31 TIOCSTI": "import fcntl\ndeny(lambda: fcntl.ioctl(os.openpty()[1], 0x5412, b'x'))",
    "K33 chroot": "deny(lambda: os.chroot('/tmp'))",
}


@pytest.mark.skipif(HERE != "x86_64", reason="the probes have the numbers of x86_64")
@pytest.mark.parametrize("probe", PROBES)
def test_probe_is_safe(probe: str) -> None:
    assert output_of(PROBE_PREAMBLE + PROBES[probe]) == "SAFE"


ORDINARY = {
    "threads": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    assert sum(pool.map(abs, range(-100, 0))) == 5050
""",
    "subprocess": """
import subprocess
assert subprocess.run(["echo", "hello"], capture_output=True).stdout == b"hello\\n"
assert subprocess.check_output("printf a | tr a b", shell=True) == b"b"
assert subprocess.run(["true"], start_new_session=True, close_fds=False).returncode == 0
assert os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0
""",
    "multiprocessing fork": """
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
""",
    "multiprocessing spawn": """
import multiprocessing
with multiprocessing.get_context("spawn").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
""",
    "multiprocessing forkserver": """
import multiprocessing
with multiprocessing.get_context("forkserver").Pool(1) as pool:
    assert pool.map(abs, [-1]) == [1]
""",
    "shared memory": """
from multiprocessing import Lock, Queue, Value, shared_memory
block = shared_memory.SharedMemory(create=True, size=4096)
block.buf[0] = 7
block.close(); block.unlink()
with Lock(): Value("i", 3)
""",
    "asyncio": """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    assert (await process.communicate())[0] == b"hi\\n"
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(10)))
    assert await asyncio.to_thread(abs, -1) == 1
asyncio.run(main())
""",
    "mmap": """
import mmap
with mmap.mmap(-1, 1 << 20) as memory:
    memory[0] = 1
    memory.resize(1 << 21)
    memory.madvise(mmap.MADV_DONTNEED)
""",
    "sqlite": """
import sqlite3, tempfile
with tempfile.TemporaryDirectory() as folder:
    database = sqlite3.connect(f"{folder}/test.db")
    database.execute("pragma journal_mode=wal")
    database.execute("create table numbers (n)")
    database.execute("insert into numbers values (1)")
    database.commit()
    assert database.execute("select sum(n) from numbers").fetchone() == (1,)
    database.close()
""",
    "files": """
import fcntl, shutil, tempfile, time
from pathlib import Path
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "a"); path.write_text("x"); path.chmod(0o600)
    os.utime(path); os.truncate(path, 10); path.rename(Path(folder, "b"))
    shutil.copy2(Path(folder, "b"), path); os.link(path, Path(folder, "c"))
    os.symlink(path, Path(folder, "d")); os.mkfifo(Path(folder, "e"))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.sendfile(os.memfd_create("to"), file.fileno(), 0, 5)
    assert len(list(Path(folder).rglob("*"))) == 5
with tempfile.TemporaryFile() as file:
    file.write(b"x"); file.flush(); os.fsync(file.fileno())
time.sleep(0.001); os.sched_getaffinity(0); os.getrandom(8); os.urandom(8)
""",
    "unix sockets": """
import socket, tempfile
left, right = socket.socketpair()
left.sendall(b"x"); assert right.recv(1) == b"x"
socket.send_fds(left, [b"y"], [0]); assert socket.recv_fds(right, 1, 1)[0] == b"y"
with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
    server.bind(f"{folder}/s"); server.listen()
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(f"{folder}/s"); server.accept()[0].close(); client.close()
""",
    "signals and limits": """
import resource, signal
caught = []
signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause(); assert caught
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
descriptor = os.pidfd_open(os.getpid()); signal.pidfd_send_signal(descriptor, 0)
""",
    "no network is an ordinary error": """
import socket, urllib.request
for attempt in (lambda: socket.create_connection(("127.0.0.1", 9)),
                lambda: socket.getaddrinfo("example.org", 80),
                lambda: urllib.request.urlopen("http://example.org")):
    try: attempt()
    except OSError: pass
    else: raise AssertionError
""",
}


@filtered
@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_python_works(what: str) -> None:
    assert output_of(ORDINARY[what]) == ""


@pytest.mark.parametrize("machine", MACHINES)
def test_shared_anonymous_memory_is_refused_where_nothing_counts_it(machine: str) -> None:
    program = seccomp.build(machine, private_memory=True)
    number = NUMBERS[machine]["mmap"]
    cases = ((0x21, EPERM), (0x23, EPERM), (0x22, ALLOW), (0x01, ALLOW), (0x40022, EPERM))
    for flags, expected in cases:
        assert decide(program, ARCHITECTURE[machine], number, 0, 4096, 3, flags)[0] == expected
