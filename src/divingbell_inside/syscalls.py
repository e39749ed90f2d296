"""The numbers of Linux system calls, for the two machines that Divingbell runs on.

Data only. Made from the kernel's own headers (6.1): `asm/unistd_64.h` for x86_64 and
`asm-generic/unistd.h` for aarch64, the latter with what `arch/arm64` asks of it (renameat, newstat,
rlimit, clone3, memfd_secret). What came after 6.1 (451 and up, uretprobe, uprobe) is from the
tables of later kernels: `syscall_64.tbl` and `scripts/syscall.tbl`. A number, once given, is never
given to another call, so this table can only be too short, never wrong.
"""

# Each row starts with the number of its first name; the others count on from there.
_X86_64 = """
0 read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction
14 rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield
25 mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm
38 setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind
50 listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit
61 wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync
75 fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink
88 symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo
100 times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid
113 setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid
123 setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend
131 sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs getpriority setpriority
142 sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max
147 sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup
154 modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday
165 mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm create_module
175 init_module delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg
183 afs_syscall tuxcall security gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr
193 fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex
203 sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit
210 io_cancel get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old
216 remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64 timer_create
223 timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime
229 clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes vserver mbind
238 set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
245 mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init
254 inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat
262 newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll
272 unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice move_pages utimensat
281 epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4
289 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo
298 perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
304 open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv process_vm_writev
312 kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create
320 kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2
329 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq uretprobe uprobe
"""

_AARCH64 = """
0 io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr
9 lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd
18 lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1
27 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat mkdirat unlinkat
36 symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs truncate ftruncate
47 fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup
59 pipe2 quotactl getdents64 lseek read write readv writev pread64 pwrite64 preadv pwritev sendfile
72 pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat fstat sync fsync fdatasync
84 sync_file_range timerfd_create timerfd_settime timerfd_gettime utimensat acct capget capset
92 personality exit exit_group waitid set_tid_address unshare futex set_robust_list get_robust_list
101 nanosleep getitimer setitimer kexec_load init_module delete_module timer_create timer_gettime
109 timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres
115 clock_nanosleep syslog ptrace sched_setparam sched_setscheduler sched_getscheduler
121 sched_getparam sched_setaffinity sched_getaffinity sched_yield sched_get_priority_max
126 sched_get_priority_min sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack
133 rt_sigsuspend rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo
139 rt_sigreturn setpriority getpriority reboot setregid setgid setreuid setuid setresuid getresuid
149 setresgid getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups setgroups
160 uname sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday
170 settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open
181 mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd
190 semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair bind listen accept
203 connect getsockname getpeername sendto recvfrom setsockopt getsockopt shutdown sendmsg recvmsg
213 readahead brk munmap mremap add_key request_key keyctl clone execve mmap fadvise64 swapon
225 swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise remap_file_pages mbind
236 get_mempolicy set_mempolicy migrate_pages move_pages rt_tgsigqueueinfo perf_event_open accept4
243 recvmmsg
260 wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime
267 syncfs setns sendmmsg process_vm_readv process_vm_writev kcmp finit_module sched_setattr
275 sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd membarrier
284 mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents
293 rseq kexec_file_load
"""

# Since 5.1 a new call gets the same number on every machine.
_EVERY_MACHINE = """
424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen
431 fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
440 process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule
446 landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node
451 cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount
459 lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat
466 removexattrat open_tree_attr file_getattr file_setattr listns
"""


def _parse(table: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for row in table.strip().splitlines():
        first, *names = row.split()
        numbers.update(zip(names, range(int(first), int(first) + len(names)), strict=True))
    return numbers


NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": _parse(_X86_64) | _parse(_EVERY_MACHINE),
    "aarch64": _parse(_AARCH64) | _parse(_EVERY_MACHINE),
}
