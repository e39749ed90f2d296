"""The interpreter of a session: runs cells, keeps their variables, shows their results.

IPython supplies the display, the magics and `!`; the cell itself is compiled and run here,
which takes a tenth of the time of IPython's own `run_cell`. Source that is plain Python never
meets IPython's input transformer: only what does not parse is given to it.
"""

import builtins
import contextlib
import fcntl
import gc
import json
import os
import random
import resource
import signal
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

from divingbell_inside import (
    cells,
    chamber,
    completion,
    display,
    exchange,
    failure,
    frames,
    kernel,
    layout,
    offline,
    output,
    repeated_warnings,
    results,
    shelf,
    shell,
    single_threaded,
    skills,
    sources,
    tokens,
    told_columns,
    tools,
    values,
)
from divingbell_inside.line import Line

PRIVATE_DESCRIPTORS = 200
"""Our descriptors live above this, out of the way of code that closes or replaces low ones."""
MAX_VARIABLES = 500
MAX_VALUE = 8 << 20
"""Bytes of a value as JSON. The host takes as many."""
MAX_SHOWN_ITEMS = 1000
"""Of a list and the like IPython shows so many."""
REHEARSALS = 20

_runner: "Runner | None" = None
_zygote_pid = 0


def prepare() -> None:
    """In the zygote: make the one Runner that every session inherits."""
    global _runner, _zygote_pid
    _zygote_pid = os.getpid()
    _runner = Runner()


def warm_up() -> None:
    """In the zygote: do once what the first cell of every session would do."""
    assert _runner is not None
    _runner.warm_up()
    _runner.rehearse()


def main(data: socket.socket, pipe: int, cradle: socket.socket) -> None:
    """In a session: serve the host until it closes the line."""
    assert _runner is not None
    gc.enable()
    _reseed()
    sys.argv = [""]  # as at Python's own prompt; what stands there is the zygote's
    _runner.serve(data, pipe, cradle)


def _reseed() -> None:
    """Seed generators anew: else the fork would give every session the same numbers.

    Python's own `random` has seen the fork and seeded itself.
    """
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed([random.getrandbits(32) for _ in range(8)])
    if "ssl" in sys.modules and os.getpid() == _zygote_pid:
        # OpenSSL notices a fork by the pid, and all sessions have the same few. Only where the
        # zygote happens to have it too must it be told, which takes it milliseconds.
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)


def _private(descriptor: int) -> int:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    lowest = min(PRIVATE_DESCRIPTORS, allowed - 16)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


def _as_data(value: Any) -> dict[str, Any]:
    """Return a value as JSON, or which kind of text must do in its place."""
    try:
        raw = values.to_json(value)
    except (values.TooLarge, MemoryError):
        return {"kind": "cut"}
    except (values.NotPlain, RuntimeError):  # a thread may change what it is made of meanwhile
        shown_in_part = type(value) in (list, tuple, set, frozenset, dict)
        return {"kind": "cut" if shown_in_part and len(value) > MAX_SHOWN_ITEMS else "text"}
    return {"value": raw} if len(raw) <= MAX_VALUE else {"kind": "cut"}


class Runner:
    def __init__(self) -> None:
        self._module = types.ModuleType("__main__")
        tools.install()
        skills.install()
        self._line = Line()
        self._shelf = shelf.Shelf()
        self.shell = shell.make(self._module, self._publish, self._clear, self._show_failure)
        self._names = self._module.__dict__
        self._names |= tools.NAMES | skills.NAMES
        self._names |= {name: sys.modules[name] for name in (tools.PACKAGE, skills.PACKAGE)}
        self._known = set(self._names)
        self._tokens = tokens.TokenValues()
        self.shell.ast_transformers.append(self._tokens)
        self._evaluator = cells.Evaluator(self._names, self.shell.transform_cell, self._tokens)
        self._outlet: output.Outlet | None = None
        self._columns = told_columns.ToldColumns(self._names)
        self._tells = False
        self._pid = 0
        self._executing = False
        self._copying = False
        self._warm = False
        builtins.input = shell.no_input
        repeated_warnings.install()
        offline.install()
        single_threaded.install()
        output.remember_cells_of_threads(lambda: self._outlet)

    # The line to the host

    def serve(self, data: socket.socket, pipe: int, cradle: socket.socket) -> None:
        self._cradle = socket.socket(fileno=_private(cradle.fileno()))
        cradle.close()
        os.register_at_fork(after_in_child=self._in_forked_child)
        kernel.buffer_c_output_by_line()
        sys.path.insert(0, os.getcwd())
        self._attach(data.detach(), pipe)
        while True:
            frame = self._line.next_request(self._evaluator.loop)
            if frame is None:
                os._exit(0)
            self._answer(*frame)

    def _attach(self, data: int, pipe: int) -> None:
        """Take over a line and an output pipe, and tell the host that we listen."""
        self._pid = os.getpid()
        self._data = socket.socket(fileno=_private(data))
        os.close(data)
        private_pipe = _private(pipe)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(pipe, 1)
        os.dup2(pipe, 2)
        for descriptor in {null, pipe} - {0, 1, 2}:
            os.close(descriptor)
        hello = frames.receive(self._data)
        if hello is None:
            os._exit(0)
        self._outlet = output.Outlet(self._data, private_pipe, bytes.fromhex(hello[0]["mark"]))
        self._outlet.cell = hello[0]["cell"]
        self._pipe = private_pipe
        self._line.attach(self._data, self._outlet)
        tools.connect(self._line)
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, name, None)
        self._restore_streams()
        signal.signal(signal.SIGINT, self._on_interrupt)
        self._outlet.send(frames.pack({"event": "ready"}))

    def _restore_streams(self) -> None:
        """Put back a stream that an earlier cell closed or removed: it would swallow everything
        after it."""
        assert self._outlet is not None
        for name in ("stdin", "stdout", "stderr"):
            found = getattr(sys, name, None)
            if found is None or getattr(found, "closed", False):
                stream = output.open_stream(name, self._outlet)
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)

    @staticmethod
    def _flush() -> None:
        # They may be anything by now: what the user put there may fail as it likes.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()

    def _answer(self, header: frames.Header, body: bytes) -> None:
        operation = header["op"]
        outlet = self._outlet
        assert outlet is not None
        try:
            if operation == "run":
                done = self._run(header, body)
                if os.getpid() != self._pid:  # the user's fork came back from its cell
                    os._exit(0 if done["status"] == "ok" else 1)
                self._finish(done)
            elif operation == "copy":
                self._copy()
            elif operation == "warm":
                if not self._warm:
                    self.warm_up()
                shell.touch(self.shell)
            elif operation == "environment":
                os.environ.update(json.loads(body))
            elif operation in ("variables", "complete"):
                seen = self._look(lambda: self._seen(header, body))
                outlet.send(frames.pack({"event": "seen", "look": header["look"], "items": seen}))
            elif operation in exchange.OPERATIONS:
                self._exchange(header, body)
        except OSError:  # descriptors closed or replaced by user code: the host starts us anew
            os._exit(layout.LOST_LINE)
        except Exception as error:  # memory at the brim, or what user code has left for us
            outlet.send(frames.pack(self._stumbled(error)))

    def _stumbled(self, error: Exception) -> frames.Header:
        assert self._outlet is not None
        limit = "memory" if isinstance(error, MemoryError) else None
        failure = {"type": type(error).__name__, "message": "while the cell ended", "limit": limit}
        return {"event": "done", "cell": self._outlet.cell, "status": "error", "error": failure}

    def _finish(self, done: dict[str, Any]) -> None:
        """Send the result and the end of the cell in one write."""
        outlet = self._outlet
        assert outlet is not None
        packed = [frames.pack(*shown) for shown in done.pop("displays", ())]
        value = done.pop("value", b"")
        outlet.running = False
        outlet.send(*packed, frames.pack({"event": "done", "cell": outlet.cell, **done}, value))

    def _on_interrupt(self, number: int, frame: object) -> None:
        if not self._executing:
            return
        assert self._outlet is not None
        if self._outlet.busy:
            self._outlet.interrupted = True
        else:
            raise KeyboardInterrupt

    def warm_up(self) -> None:
        shell.warm_up(self.shell)
        self._warm = True

    def rehearse(self) -> None:
        """In the zygote: run some cells to nobody.

        Python rewrites the code of a function while it runs for the first times. Done here, that
        memory stays shared; done in a session, every session has a copy of it.
        """
        self._pid = os.getpid()
        null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        host, line = socket.socketpair()
        with host, line:
            self._outlet = output.Outlet(line, null, b"")
            for turn in range(REHEARSALS):
                for source in shell.typical():
                    header = {"op": "run", "cell": turn, "context": 0, "tokens": 0, "tools": 0}
                    host.sendall(frames.pack(header, source.encode()))
                    received = frames.receive(line)
                    assert received is not None
                    self._answer(*received)
                    host.recv(frames.RECEIVE_SIZE)
        os.close(null)
        self._outlet = None
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for name in set(self._names) - self._known:
            del self._names[name]

    # Running a cell

    def _run(self, header: frames.Header, body: bytes) -> dict[str, Any]:
        outlet = self._outlet
        assert outlet is not None
        outlet.cell = header["cell"]
        self._restore_streams()
        output.cell_of_task.set(outlet.cell)
        context = header["context"]
        split = context + header["tokens"]
        if tools.keep_up(header["tools"]):
            skills.forget()
        repeated_warnings.begin_cell(self._names)
        self._tells = header.get("columns") is True
        signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            try:
                self._executing = True
                if context:
                    self._take(body[:context])
                self._tokens.take(body[context:split])
                outlet.running = True
                done, value = self._execute(body[split:].decode("utf-8"), outlet.cell)
                if self._evaluator.only_reads and not context:
                    done["only_read"] = True
                self._show_figures(value)
                if self._tells:
                    self._tell(self._columns.all())
            finally:
                self._executing = False
                outlet.telling = None
                self._flush()
                kernel.flush_c_output()
        except KeyboardInterrupt:
            return {"status": "interrupted"}
        except BaseException as error:  # from showing figures, or raised by a hostile stream
            return {"status": "error", "error": failure.describe(error)}
        return done

    def _take(self, raw: bytes) -> None:
        """Take over the variables that come with a cell, and the arguments of a script."""
        if b'"$' in raw:
            given = values.from_json(raw, items=len(raw), text=len(raw))
        else:  # ordinary JSON, which the host has checked: 100,000 rows take a tenth of the time
            given = json.loads(raw)
        argv = given.pop(frames.ARGV, None)
        if argv is not None:
            sys.argv = argv
            if os.path.isfile(argv[0]):
                self._names["__file__"] = os.path.abspath(argv[0])
        self._names.update(given)

    def _execute(self, source: str, cell: int) -> tuple[dict[str, Any], Any]:
        """Run a cell; return how it ended, and the value of its last line."""
        name = failure.CELL_FILE.format(cell)
        sources.remember(name, source)
        try:
            parts = self._evaluator.compile(source, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            error = error.with_traceback(None)  # the parser's lines say nothing about the user's
            return {"status": "error", "error": failure.describe(error) | {"limit": None}}, None
        if self._tells:
            self._columns.begin(code for code, _ in parts)
            assert self._outlet is not None
            self._outlet.telling = lambda: self._tell(self._columns.fresh())
        try:
            value = self._evaluator.evaluate(parts)
            done: dict[str, Any] = {"status": "ok"}
            if value is not None:
                self._names["_"] = value
                done |= self._result(value)
            return done, value
        except KeyboardInterrupt as error:
            return {"status": "interrupted", "error": failure.describe(error)}, None
        except SystemExit as error:
            return self._exited(error), None
        except BaseException as error:
            sys.last_value = error
            return {"status": "error", "error": failure.describe(error)}, None

    def _exited(self, error: SystemExit) -> dict[str, Any]:
        if not error.code:
            return {"status": "ok"}
        described = failure.describe(error)
        if isinstance(error.code, int):
            is_long = -(2**63) <= error.code < 2**63
            described["exit_status"] = error.code & 0xFF if is_long else 0xFF  # as Python has it
        return {"status": "error", "error": described}

    def _result(self, value: Any) -> dict[str, Any]:
        """Return the value of the last expression: for people (display), for programs (data)."""
        if self._tells:
            self._tell(self._columns.all(value))
        done = _as_data(value)
        bundle = shell.bundle_of(self.shell, value)
        if bundle:
            if "kind" in done and display.is_too_long(bundle):
                done["kind"] = "cut"
            done["displays"] = [display.pack_display(self._parts(bundle), result=True)]
            for image in results.images_in(value):
                parts = self._parts(image._repr_mimebundle_())
                done["displays"].append(display.pack_display(parts))
        return done

    # Showing things

    def _tell(self, told: bytes) -> None:
        """Tell the host what tables say, before what is written next."""
        if told and self._outlet is not None:
            self._outlet.event({"event": "columns"}, told)

    def _publish(self, bundle: dict[str, Any], display_id: str | None, update: bool) -> None:
        outlet = self._outlet
        if outlet is None or not outlet.attached:
            return
        display_id = display_id and str(display_id)[:200]
        outlet.tell()
        if parts := self._parts(bundle, display_id):
            self._flush()
            outlet.event(*display.pack_display(parts, id=display_id, update=update))

    def _parts(self, bundle: dict[str, Any], display_id: str | None = None) -> list[display.Part]:
        cell = 0 if self._outlet is None else self._outlet.cell
        return display.parts_of(
            bundle, lambda kind, raw: self._shelf.keep(cell, kind, raw, display_id)
        )

    def _clear(self, wait: bool) -> None:
        if self._outlet is not None:
            self._flush()
            self._outlet.event({"event": "clear", "wait": bool(wait)})

    def _show_failure(self, error: BaseException) -> None:
        print(failure.describe(error)["traceback"], file=sys.stderr, end="")

    def _show_figures(self, value: Any) -> None:
        """Show the figures that are open, but for the one that is the value of the cell."""
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is None or not helpers.Gcf.figs:
            return
        figures = (manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers())
        for figure in (figure for figure in figures if figure is not value):
            bundle = shell.bundle_of(self.shell, figure)
            if bundle:
                self._publish(bundle, None, False)
        sys.modules["matplotlib.pyplot"].close("all")

    # The other things the host may ask for

    def _look(self, look: Callable[[], list[Any]]) -> list[Any]:
        """Look at objects of the user's, which may do anything then; an interrupt ends that."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        self._executing = True
        try:
            return look()
        except KeyboardInterrupt:
            return []
        finally:
            self._executing = False

    def _exchange(self, header: frames.Header, body: bytes) -> None:
        assert self._outlet is not None
        answers = self._look(lambda: [exchange.answer(self._names, self._known, header, body)])
        items, value = answers[0] if answers else ([], b"")
        seen = {"event": "seen", "look": header["look"], "items": items}
        self._outlet.send(frames.pack(seen, value))

    def _seen(self, header: frames.Header, body: bytes) -> list[Any]:
        if header["op"] == "variables":
            return self._variables()
        return completion.completions(self.shell, body.decode(), header["position"])

    def _variables(self) -> list[dict[str, Any]]:
        found = []
        for name, value in list(self._names.items())[: MAX_VARIABLES * 4]:
            if (
                not isinstance(name, str)
                or name in self._known
                or name.startswith("_")
                or isinstance(value, types.ModuleType)
            ):
                continue
            found.append({"name": name[:200], **shell.summary_of(value)})
        return found[:MAX_VARIABLES]

    def _copy(self) -> None:
        """Fork a copy that waits to take our place; the supervisor becomes its parent."""
        outlet = self._outlet
        assert outlet is not None
        if len(os.listdir("/proc/self/task")) > 1:
            outlet.send(frames.pack({"event": "copied", "reason": "threads"}))
            return
        numbers = random.getstate()  # the fork reseeds, and the user may have chosen a seed
        announced, announce = os.pipe()
        self._copying = True
        try:
            pid = kernel.clone(kernel.CLONE_PARENT)
        except OSError as error:
            os.close(announced)
            os.close(announce)
            outlet.send(frames.pack({"event": "copied", "reason": str(error)}))
            return
        finally:
            self._copying = False
        if pid:
            os.close(announce)
            os.read(announced, 1)  # returns when the supervisor knows of the copy, or it is dead
            os.close(announced)
            outlet.send(frames.pack({"event": "copied", "reason": None}))
        else:
            os.close(announced)
            random.setstate(numbers)
            self._wait_as_copy(announce)

    def _wait_as_copy(self, announce: int) -> None:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        chamber.make_expendable("copy")
        assert self._outlet is not None
        self._outlet.detach()
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        os.close(null)
        os.close(self._pipe)
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self._cradle, [b"copy"], [theirs.fileno()])
        theirs.close()
        os.close(announce)
        _, descriptors, _, _ = socket.recv_fds(mine, 16, 2)
        mine.close()
        if len(descriptors) != 2:
            os._exit(0)
        chamber.make_expendable("interpreter")
        self._attach(*descriptors)

    def _in_forked_child(self) -> None:
        """A child of user code has no line to the host; its output goes down the pipe."""
        if not self._copying and self._outlet is not None:
            self._outlet.detach()
