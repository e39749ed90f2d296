import contextlib
import os
import socket

reached: list[str] = []


def call(kind: int, address: object) -> None:
    with socket.socket(kind) as end:
        end.settimeout(1)
        end.connect(address)  # type: ignore[arg-type]
        reached.append(str(address))


for port in globals()["PORTS"]:
    for host in ("127.0.0.1", "localhost", "0.0.0.0", *globals()["HOSTS"]):
        with contextlib.suppress(OSError):
            call(socket.AF_INET, (host, port))
    with contextlib.suppress(OSError):
        call(socket.AF_INET6, ("::1", port))
for name in globals()["SOCKETS"]:
    with contextlib.suppress(OSError):
        call(socket.AF_UNIX, name)
for path in globals()["FILES"]:
    try:
        open(path).close()
        reached.append(path)
    except OSError:
        pass
reached += [name for name in os.environ if name.startswith("RAY_")]
print(f"REACHED={reached}")
