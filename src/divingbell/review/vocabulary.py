"""The names that a review knows: modules and functions by what they do."""

from collections.abc import Mapping

from divingbell.settings.review import ReviewKind

USUAL_NAMES: Mapping[str, str] = {
    name: name
    for name in (
        "asyncio", "builtins", "concurrent", "importlib", "multiprocessing", "numpy", "os",
        "pathlib", "pty", "runpy", "servers", "shutil", "subprocess", "sys", "threading",
    )
} | {"np": "numpy", "mp": "multiprocessing", "Path": "pathlib.Path"}  # fmt: skip
"""Names that stand for modules where a cell has not bound them: an earlier one may have."""
SERVERS = "servers"
"""The package that tools are imported from."""
CALL_TOOL = "call_mcp_tool"

_OF_OS = (
    "system", "popen", "fork", "forkpty", "execl", "execle", "execlp", "execlpe", "execv",
    "execve", "execvp", "execvpe", "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv",
    "spawnve", "spawnvp", "spawnvpe", "posix_spawn", "posix_spawnp", "startfile",
)  # fmt: skip
FUNCTIONS: Mapping[str, ReviewKind] = {
    **dict.fromkeys((f"os.{name}" for name in _OF_OS), "process"),
    **dict.fromkeys((f"posix.{name}" for name in _OF_OS), "process"),
    "asyncio.create_subprocess_exec": "process",
    "asyncio.create_subprocess_shell": "process",
    "asyncio.open_connection": "network",
    "asyncio.start_server": "network",
    "concurrent.futures.ProcessPoolExecutor": "process",
    "builtins.compile": "dynamic",
    "builtins.eval": "dynamic",
    "builtins.exec": "dynamic",
    "code.interact": "dynamic",
    "importlib.util.spec_from_file_location": "dynamic",
    "importlib.util.spec_from_loader": "dynamic",
    "marshal.loads": "dynamic",
    "runpy.run_module": "dynamic",
    "runpy.run_path": "dynamic",
    "types.CodeType": "dynamic",
    "types.FunctionType": "dynamic",
    "sys._getframe": "dynamic",
}
"""What a function does, by its dotted name."""
MODULES: Mapping[str, ReviewKind] = {
    "subprocess": "process",
    "multiprocessing": "process",
    "pty": "process",
    "pexpect": "process",
}
"""What every function of a module does. Merely to import one is no finding."""
HARMLESS = frozenset({
    "multiprocessing.cpu_count",
    "subprocess.PIPE",
    "subprocess.DEVNULL",
    "subprocess.STDOUT",
    "subprocess.CalledProcessError",
    "subprocess.CompletedProcess",
    "subprocess.SubprocessError",
    "subprocess.TimeoutExpired",
})  # fmt: skip
"""Names in those modules that start nothing."""
IMPORTS: Mapping[str, ReviewKind] = {
    **dict.fromkeys(
        (
            "aiohttp", "anthropic", "boto3", "botocore", "ftplib", "googleapiclient", "grpc",
            "http.client", "http.server", "httpx", "imaplib", "openai", "paramiko", "playwright",
            "poplib", "psycopg", "psycopg2", "pymongo", "pymysql", "redis", "requests", "selenium",
            "smtplib", "socket", "socketserver", "telnetlib", "urllib.request", "urllib3",
            "websocket", "websockets", "wsgiref.simple_server", "xmlrpc.client", "yfinance",
        ),
        "network",
    ),
    **dict.fromkeys(("ctypes", "cffi", "code", "codeop"), "dynamic"),
}  # fmt: skip
"""Modules that are imported for one purpose only."""

EVALUATORS = frozenset({
    "eval", "exec", "compile", "__import__", "__builtins__", "breakpoint", "get_ipython",
})  # fmt: skip
"""Names of Python's own, and of IPython's, that make code, or lead to what does."""
QUIET_MAGICS = frozenset({
    "cd", "colors", "config", "dhist", "doctest_mode", "env", "html", "javascript", "js", "latex",
    "lsmagic", "magic", "markdown", "matplotlib", "page", "pdef", "pdoc", "pinfo", "pinfo2",
    "pprint", "precision", "psearch", "psource", "pwd", "pylab", "reset", "reset_selective",
    "svg", "who", "who_ls", "whos", "xdel", "xmode",
})  # fmt: skip
"""Magics that run no code and no program. Any other may be an alias that an earlier cell made."""
IMPORTERS = frozenset({"__import__", "builtins.__import__", "importlib.import_module"})
"""Functions that import the module that their first argument names."""
NAMESPACES = frozenset({"globals", "locals", "vars"})
"""Functions whose result names everything."""
INNER_ATTRIBUTES = frozenset({
    "__subclasses__", "__globals__", "__builtins__", "__code__", "__mro__", "__bases__",
    "f_globals", "f_builtins", "f_locals", "tb_frame", "gi_frame", "cr_frame", "__loader__",
})  # fmt: skip
"""Attributes by which code gets from any object to any other."""

THREADS = frozenset({"threading.Thread", "_thread.start_new_thread", "multiprocessing.Process"})
FORKS = frozenset({"os.fork", "os.forkpty", "posix.fork"})
EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit", "os.abort"})

PATH_FIRST = frozenset({
    "os.chmod", "os.chown", "os.link", "os.makedirs", "os.mkdir", "os.mkfifo", "os.remove",
    "os.removedirs", "os.rename", "os.replace", "os.rmdir", "os.symlink", "os.truncate",
    "os.unlink", "shutil.rmtree", "shutil.move", "numpy.save", "numpy.savez", "numpy.savetxt",
})  # fmt: skip
"""Functions that change what their first argument names."""
PATH_SECOND = frozenset({
    "os.link", "os.rename", "os.replace", "os.symlink", "shutil.copy", "shutil.copy2",
    "shutil.copyfile", "shutil.copytree", "shutil.move",
})  # fmt: skip
WRITING_METHODS = frozenset({
    "imsave", "savefig", "savetxt", "to_csv", "to_excel", "to_feather", "to_hdf", "to_html",
    "to_json", "to_latex", "to_markdown", "to_parquet", "to_pickle", "write_csv", "write_html",
    "write_image", "write_json", "write_parquet",
})  # fmt: skip
"""Methods of tables and charts that write the file that their first argument names."""
PATH_METHODS = frozenset({
    "chmod", "hardlink_to", "mkdir", "rename", "replace", "rmdir", "symlink_to", "touch",
    "unlink", "write_bytes", "write_text",
})  # fmt: skip
"""Methods of a `pathlib.Path` that change the file."""
INSTALLERS = ("pip", "pip3", "uv", "conda", "mamba", "apt", "apt-get", "npm", "poetry")
INSTALL_WORDS = frozenset({"install", "add", "pip"})

ADVICE: Mapping[ReviewKind, str] = {
    "import": "Use a module that is allowed, or do without it.",
    "dynamic": "Write out what it would do: call functions by their names, and read data with "
    "json.loads or ast.literal_eval.",
    "process": "Do it in Python: pathlib and shutil for files, the packages here for data.",
    "network": "There is no network in the sandbox. Call a tool of an MCP server instead: "
    "search_tools() finds them.",
    "install": "Nothing can be installed in the sandbox. Use the packages that are there.",
    "loop": "Give it an end that it reaches, use a faster way (vectorise, sample the data), or "
    "split the work.",
    "size": "Work on less data at once, or make it piece by piece.",
    "bomb": "Start a fixed number, and wait for those that you have started.",
    "write": "Write to /workspace (a relative path does) or /tmp.",
    "tool": "Do without this tool, or ask the person.",
    "unread": "Split it into several shorter runs, put data into a file in /workspace, and nest "
    "it less.",
    "syntax": "Correct it, and run it again.",
}
"""What to do instead, for each kind of finding."""
