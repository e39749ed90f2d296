# mypy: ignore-errors
# The first call is under way, or was made in an earlier cell. Nothing may go out after it.
import subprocess
import threading
import time

from preamble import safe, unsafe


def publish(words):
    given = {"name": "T67 published", "text": str(words)}
    try:
        unsafe(f"{words}: {call_mcp_tool('hostile.publish', given)}")  # noqa: F821
    except ToolDenied as error:  # noqa: F821
        (safe if "data of hostile.dossier" in str(error) else unsafe)(error)


def read(seconds=0):
    given = {"name": f"T67 {HOW}", "seconds": seconds}  # noqa: F821
    return str(call_mcp_tool("hostile.dossier", given))  # noqa: F821


def wait_until_sent():
    until = time.monotonic() + 15
    while str(call_mcp_tool("hostile.counted", {"name": f"T67 {HOW}"})) == "0":  # noqa: F821
        if time.monotonic() > until:
            unsafe("the first call did not leave")
            break
        time.sleep(0.5)  # the calls of a cell are numbered


if HOW == "under way":  # noqa: F821
    threading.Thread(target=read, args=[20], daemon=True).start()
    wait_until_sent()
    publish("nothing yet")
elif HOW == "returned":  # noqa: F821
    kept = read()
    with open("kept", "w") as file:
        file.write(kept)
    threads = [threading.Thread(target=publish, args=[kept]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    publish(kept.encode().hex())
    publish(subprocess.run(["cat", "kept"], capture_output=True, text=True).stdout)
publish("afterwards")
