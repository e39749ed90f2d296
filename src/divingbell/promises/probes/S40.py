# mypy: ignore-errors
import json
import os
import random
import secrets
import ssl
import sys
import tempfile
import uuid

found = {
    "random": random.random(),
    "own generator": random.Random().random(),
    "uuid": uuid.uuid4().hex,
    "secrets": secrets.token_hex(8),
    "ssl": ssl.RAND_bytes(8).hex(),
    "urandom": os.urandom(8).hex(),
    "file name": tempfile.mktemp(),
}
if "numpy" in sys.modules:
    found["numpy"] = float(sys.modules["numpy"].random.random())
    found["numpy's new one"] = float(sys.modules["numpy"].random.default_rng().random())
print(json.dumps(found))
