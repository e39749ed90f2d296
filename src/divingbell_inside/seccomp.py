"""The filter that every system call of a session passes: a list of what is allowed.

What is not listed here and known to `syscalls` answers EPERM. What no table of ours knows answers
ENOSYS, so that a newer C library falls back to an older call. The list is a subset of what
Docker's default profile gives a process without capabilities; a test holds it to that.

Only loads of the number and the architecture stand on the way to a plain answer. The kernel
(since 5.11) then works out beforehand which calls are always allowed and does not run the filter
for them at all: see `seccomp_is_const_allow` in its source. Keep it so.
"""

import ctypes
import errno
import os
import socket
import stat
import struct

from divingbell_inside.syscalls import NUMBERS

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant
_Block = tuple[_Instruction, ...]

_ALLOWED_NAMES = """
access cachestat chdir chmod chown close close_range copy_file_range creat dup dup2 dup3
faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat
fdatasync flock fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 lchown link
linkat lseek lstat mkdir mkdirat newfstatat open openat openat2 pread64 preadv preadv2 pwrite64
pwritev pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir
sendfile splice stat statfs statx symlink symlinkat sync_file_range tee truncate
umask unlink unlinkat utime utimensat utimes write writev

fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr listxattrat
llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch

brk madvise map_shadow_stack membarrier mincore mlock mlock2 mlockall mprotect mremap mseal
msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages

arch_prctl execve execveat exit exit_group fork get_robust_list getcpu getpgid getpgrp getpid
getppid getsid gettid pidfd_open pidfd_send_signal process_mrelease restart_syscall rseq
set_robust_list set_tid_address setpgid setsid uretprobe vfork wait4 waitid

capget capset getegid geteuid getgid getgroups getresgid getresuid getuid setfsgid setfsuid
setgid setgroups setregid setresgid setresuid setreuid setuid
landlock_add_rule landlock_create_ruleset landlock_restrict_self

getpriority getrlimit getrusage ioprio_get ioprio_set prlimit64 sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield setpriority setrlimit sysinfo times uname

kill pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4 tgkill tkill

alarm clock_getres clock_gettime clock_nanosleep getitimer getrandom gettimeofday nanosleep
setitimer time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime

epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2
futex futex_requeue futex_wait futex_waitv futex_wake pipe pipe2
poll ppoll pselect6 select

mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink

accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
sendmmsg sendmsg sendto setsockopt shutdown
"""
ALLOWED = frozenset(_ALLOWED_NAMES.split())
UNCOUNTED_MEMORY = frozenset({"memfd_create"})
"""What may not be made where memory is limited for each process: no such limit counts it."""
_libc = ctypes.CDLL(None, use_errno=True)

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# struct seccomp_data: the number, the architecture, the instruction pointer, six arguments.
_NUMBER_OFFSET = 0
_ARCHITECTURE_OFFSET = 4
_ARGUMENTS_OFFSET = 16
_WORD = 0xFFFFFFFF

# BPF codes, each one known to the kernel's `seccomp_is_const_allow`.
_LOAD = 0x20
_AND = 0x54
_JUMP = 0x05
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_AT_LEAST = 0x35
_RETURN = 0x06
_LONGEST_CONDITIONAL_JUMP = 255
_INSTRUCTION_BYTES = 8

_ANSWER_ERROR = 0x00050000
_ALLOW: _Instruction = (_RETURN, 0, 0, 0x7FFF0000)
_FORBIDDEN: _Instruction = (_RETURN, 0, 0, _ANSWER_ERROR | errno.EPERM)
_MISSING: _Instruction = (_RETURN, 0, 0, _ANSWER_ERROR | errno.ENOSYS)
_KILL_PROCESS: _Instruction = (_RETURN, 0, 0, 0x80000000)

_CLONE_NAMESPACE_FLAGS = 0x7E020000  # not NEWTIME: its bit is part of clone's exit signal
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # Linux, 32-bit, old uname, both, query
_FILE_TYPES = (0, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK)
_PR_SET_SECCOMP, _PR_SET_MM = 22, 35
_SECCOMP_MODE_FILTER = 2
_F_SETLEASE, _F_NOTIFY, _F_SETDELEG = 1024, 1026, 1040
_SHARED, _ANONYMOUS = 0x1, 0x20
_MAP_HUGETLB, _MFD_HUGETLB = 0x40000, 0x4


def _compare(
    argument: int, values: tuple[int, ...], mask: int, listed: _Instruction, other: _Instruction
) -> _Block:
    # The low half only, as the kernel reads these arguments: were the high half looked at too,
    # garbage there would carry a forbidden value past the comparison.
    load: _Block = ((_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * argument),)
    if mask != _WORD:
        load += ((_AND, 0, 0, mask),)
    jumps = tuple(
        (_JUMP_IF_EQUAL, len(values) - position, 0, value) for position, value in enumerate(values)
    )
    return (*load, *jumps, other, listed)


def _only(argument: int, *values: int, mask: int = _WORD) -> _Block:
    return _compare(argument, values, mask, _ALLOW, _FORBIDDEN)


def _all_but(argument: int, *values: int) -> _Block:
    return _compare(argument, values, _WORD, _FORBIDDEN, _ALLOW)


BY_ARGUMENT: dict[str, _Block] = {
    "clone": _only(0, 0, mask=_CLONE_NAMESPACE_FLAGS),
    # The flags of clone3 are behind a pointer, where no filter can look.
    "clone3": (_MISSING,),
    # Who has a lease on a file holds up everyone that opens it, on the host too. A read-only
    # mount is no hindrance; that the file is the user's own is enough.
    "fcntl": _all_but(1, _F_SETLEASE, _F_NOTIFY, _F_SETDELEG),
    # Keystrokes into a terminal that the host reads from.
    "ioctl": _all_but(1, _TIOCSTI, _TIOCLINUX, _TIOCSETD),
    # Huge pages are set aside for the whole machine, and no limit on memory counts them.
    "memfd_create": _only(1, 0, mask=_MFD_HUGETLB),
    "mmap": _only(3, 0, mask=_MAP_HUGETLB),
    "mknod": _only(1, *_FILE_TYPES, mask=0o170000),
    "mknodat": _only(2, *_FILE_TYPES, mask=0o170000),
    "personality": _only(0, *_PERSONALITIES),
    "prctl": _all_but(0, _PR_SET_SECCOMP, _PR_SET_MM),
    # No network of any family: AF_ALG, AF_VSOCK and AF_NETLINK are not bound to a namespace's lack
    # of interfaces, and each has opened kernels before.
    "socket": _only(0, socket.AF_UNIX),
    "socketpair": _only(0, socket.AF_UNIX),
}


def _search(spans: list[tuple[int, _Block]]) -> _Block:
    """A binary search over (first number, answer); every jump in it goes forward."""
    if len(spans) == 1:
        return spans[0][1]
    middle = len(spans) // 2
    pivot = spans[middle][0]
    below, above = _search(spans[:middle]), _search(spans[middle:])
    if len(below) <= _LONGEST_CONDITIONAL_JUMP:
        return ((_JUMP_IF_AT_LEAST, len(below), 0, pivot), *below, *above)
    return ((_JUMP_IF_AT_LEAST, 0, 1, pivot), (_JUMP, 0, 0, len(below)), *below, *above)


def _answer(name: str, deny: frozenset[str], private_memory: bool) -> _Block:
    if name in deny and name != "clone3":
        return (_FORBIDDEN,)
    if name == "mmap" and private_memory:
        private = (0, _SHARED, _ANONYMOUS)
        return _only(3, *private, mask=_MAP_HUGETLB | _SHARED | _ANONYMOUS)
    return BY_ARGUMENT.get(name, (_ALLOW,) if name in ALLOWED else (_FORBIDDEN,))


def build(
    machine: str, *, deny: frozenset[str] = frozenset(), private_memory: bool = False
) -> bytes:
    """Return the filter for `machine` as a packed array of BPF instructions.

    Args:
        machine: As `os.uname().machine` says it: "x86_64" or "aarch64".
        deny: Names of further calls that shall answer EPERM.
        private_memory: Refuse shared anonymous memory, which no limit on a process counts.

    Raises:
        ValueError: The machine, or a name in `deny`, is not known.
    """
    if machine not in NUMBERS:
        raise ValueError(f"no system call table for {machine}: use one of {', '.join(NUMBERS)}")
    if unknown := deny.difference(*NUMBERS.values()):
        raise ValueError(f"not names of system calls: {', '.join(sorted(unknown))}")
    answers = {
        number: _answer(name, deny, private_memory) for name, number in NUMBERS[machine].items()
    }
    spans: list[tuple[int, _Block]] = []
    # One past the table: from there on everything is missing, the x32 calls (0x40000000 and up,
    # which would repeat the whole table under other numbers) among it.
    for number in range(max(answers) + 2):
        answer = answers.get(number, (_MISSING,))
        if not spans or spans[-1][1] != answer:
            spans.append((number, answer))
    program: _Block = (
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_IF_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        # A 32-bit call (int 0x80): its numbers mean other calls. No honest program gets here.
        _KILL_PROCESS,
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        *_search(spans),
    )
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def install(program: bytes) -> None:
    """Put this thread, and all that it starts, under the filter for good.

    No new privileges must have been set, and no other thread be running: it would stay outside.

    Raises:
        OSError: The kernel refused; the process is not filtered.
    """
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count and a pointer.
    count = len(program) // _INSTRUCTION_BYTES
    description = struct.pack("HP", count, ctypes.addressof(instructions))
    # The same as seccomp(2) without flags, and it needs no number.
    if _libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), description, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"install the seccomp filter: {os.strerror(number)}")
