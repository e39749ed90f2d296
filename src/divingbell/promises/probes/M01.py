import socket

port = int(globals()["PORT"])
reached = []
for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0"):
    try:
        socket.create_connection((host, port), timeout=1).close()
        reached.append(host)
    except OSError:
        pass
print(f"REACHED={reached}")
