"""A program with two users, whose requests, cells and calls are spans; prints all of them."""

import asyncio
import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from divingbell import Divingbell, Session

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("program")


async def ask(session: Session, name: str) -> list[str]:
    with tracer.start_as_current_span(f"request {name}"):
        result = await session.run("from servers.traced import place\nplace()")
        assert result.status == "ok", result.error
        found: list[str] = result.value
        return found


async def main(server: str) -> None:
    entry = {"command": sys.executable, "args": [server]}
    async with Divingbell(servers={"traced": entry}, traces="on", preload=[], pool=0) as bell:
        with tracer.start_as_current_span("opening, for another"):
            sessions = [await bell.open(user=user) for user in ("anna", "bert")]
        places = await asyncio.gather(
            *(ask(session, name) for session, name in zip(sessions, "ab", strict=True))
        )
        failed = await sessions[0].run("raise ValueError('secret words')")
        assert failed.status == "error"
    spans = [json.loads(span.to_json()) for span in exporter.get_finished_spans()]
    print(json.dumps({"spans": spans, "places": places}))


asyncio.run(main(sys.argv[1]))
