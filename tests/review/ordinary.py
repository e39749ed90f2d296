"""Ordinary work with data: a review says nothing about any of it. Each is a cell of its own."""

SNIPPETS = {
    "a table read, grouped and shown": """
import pandas as pd
import numpy as np

flights = pd.read_csv("flights.csv", parse_dates=["time_hour"])
flights["delay"] = flights["dep_delay"].fillna(0) + flights["arr_delay"].fillna(0)
worst = (
    flights.groupby("carrier")
    .agg(flights=("flight", "count"), mean=("delay", "mean"), worst=("delay", "max"))
    .sort_values("mean", ascending=False)
    .head(10)
)
worst.to_csv("worst.csv")
worst.to_parquet("/workspace/worst.parquet")
print(worst.to_string())
""",
    "a chart": """
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(8, 4))
ax.plot(range(100), [x**2 for x in range(100)], label="squares")
ax.set(title="Growth", xlabel="x", ylabel="y")
ax.legend()
fig.savefig("growth.png", dpi=150)
plt.show()
""",
    "a simulation": """
import numpy as np

rng = np.random.default_rng(7)
n, rounds = 10_000, 1_000
inside = 0
for _ in range(rounds):
    x, y = rng.random(n), rng.random(n)
    inside += int(((x * x + y * y) <= 1).sum())
print(4 * inside / (n * rounds))
""",
    "a matrix": """
import numpy as np

a = np.zeros((1000, 1000))
b = np.ones((1000, 1000), dtype=np.float32)
c = np.full((100, 100), 3.0) @ np.eye(100)
np.save("c.npy", c)
c.sum(), 2**64, 10**18, 1 << 40, 0.5**10**9, "-" * 80, [0] * 1_000_000
""",
    "files and JSON": """
import json, csv, io, os, re, pathlib, tempfile, shutil, zipfile
from pathlib import Path

out = Path("out")
out.mkdir(exist_ok=True)
(out / "a.json").write_text(json.dumps({"a": [1, 2]}))
Path("/tmp/b.txt").write_text("b")
with open("notes.txt", "w") as file:
    file.write("hello")
with open("/workspace/data.csv", newline="") as file:
    rows = list(csv.DictReader(file))
with open("/etc/hostname") as file:
    print(file.read())
shutil.copy("notes.txt", "/tmp/notes.txt")
os.makedirs("/tmp/x/y", exist_ok=True)
words = re.compile(r"\\w+").findall("some words")
""",
    "odd escapes": "import re\nre.findall('\\d+', 'a1b22')",
    "a search with an end": """
def collatz(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1

longest = max(range(1, 100_000), key=collatz)
i = 0
while True:
    i += 1
    if i * i > 10**9:
        break
""",
    "recursion with an end": """
from functools import lru_cache

@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def walk(tree):
    yield tree["name"]
    for child in tree["children"]:
        yield from walk(child)

def depth(tree):
    if not tree:
        return 0
    return 1 + max(map(depth, tree))

fib(90)
""",
    "the first that fits of many": """
for n in range(10**12):
    if n * n > 12345:
        print(n)
        break
next(n for n in range(10**12) if n * n > 12345)
import itertools
for n in itertools.count():
    if n > 10:
        break
""",
    "a worker in a thread": """
import queue, threading

jobs, done = queue.Queue(), []

def work():
    while True:
        job = jobs.get()
        done.append(job * 2)
        jobs.task_done()

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for n in range(20):
    jobs.put(n)
jobs.join()
""",
    "reading to the end": """
lines = iter(open("notes.txt"))
try:
    while True:
        print(next(lines))
except StopIteration:
    pass
""",
    "awaiting": """
import asyncio

async def tick(n):
    await asyncio.sleep(0)
    return n

results = await asyncio.gather(*(tick(n) for n in range(10)))
async with asyncio.timeout(1):
    print(sum(results))
""",
    "models": """
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
import statsmodels.api as sm
import polars as pl, duckdb, scipy.stats, sympy

frame = pl.read_csv("a.csv").filter(pl.col("x") > 3)
model = LinearRegression().fit(frame["x"].to_numpy().reshape(-1, 1), frame["y"])
duckdb.sql("select count(*) from frame").df()
frame.to_pandas().eval("z = x + y").query("z > 3")
model.compile(optimizer="adam")
""",
    "classes and dates": """
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit
import getpass, platform, sys, time, typing, collections, math, random, statistics

@dataclass
class Order:
    id: int
    at: datetime

    def __post_init__(self):
        super().__init__()

orders = [Order(n, datetime(2024, 1, 1) + timedelta(days=n)) for n in range(365)]
by_month = collections.Counter(order.at.month for order in orders)
host = urlsplit("https://example.com/a").netloc
"{:>10}".format(host), getattr(orders[0], "id")
""",
    "magics": """
%matplotlib inline
%time sum(range(10**6))
%timeit -n 10 sorted(range(1000))
import pandas as pd
pd.DataFrame?
df = pd.DataFrame({"a": [1, 2]})
df.describe()
""",
    "a cell magic": "%%time\ntotal = sum(range(10**6))\ntotal",
}
