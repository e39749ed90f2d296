"""A web service: every user has sessions that last, and output is streamed as it comes.

Start it, then talk to it:

    python examples/web_service.py 8000
    curl -N -H 'X-User: ada' --data 'x = 6 * 7; print(x)' localhost:8000/sessions/notebook
    curl -X DELETE -H 'X-User: ada' localhost:8000/sessions/notebook
"""

import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from divingbell import CapacityError, Divingbell, DivingbellError, Event, Session

IDLE_TIMEOUT = 600


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, Divingbell], None]:
    """One Divingbell for the whole process: it starts with the server, and ends with it."""
    async with Divingbell() as bell:
        yield {"bell": bell}


def whose(request: Request) -> str | None:
    """The user. Your own sign-in goes here: whoever can choose a name has its sessions."""
    return request.headers.get("x-user")


async def session_of(request: Request) -> Session:
    """The user's session of that id. It ends by being idle, or when it is deleted."""
    bell: Divingbell = request.state.bell
    id, user = request.path_params["id"], whose(request)
    return bell.get(id, user=user) or await bell.open(id, user=user, idle_timeout=IDLE_TIMEOUT)


async def run(request: Request) -> Response:
    """Run the body as a cell, and stream what happens as server-sent events."""
    code = (await request.body()).decode()
    session = await session_of(request)
    return StreamingResponse(told(session.stream(code)), media_type="text/event-stream")


async def told(events: AsyncGenerator[Event, None]) -> AsyncIterator[str]:
    # When the client leaves, the server cancels this, and the cell is interrupted.
    async with contextlib.aclosing(events):
        async for event in events:
            shown = event.result.to_dict() if event.result else event.text
            yield f"event: {event.type}\ndata: {json.dumps(shown)}\n\n"


async def end(request: Request) -> Response:
    session = request.state.bell.get(request.path_params["id"], user=whose(request))
    if session is not None:
        await session.close()
    return Response(status_code=204)


async def refused(request: Request, error: Exception) -> Response:
    status = 503 if isinstance(error, CapacityError) else 400
    code = error.code if isinstance(error, DivingbellError) else ""
    return JSONResponse({"code": code, "message": str(error)}, status)


app = Starlette(
    routes=[
        Route("/sessions/{id}", run, methods=["POST"]),
        Route("/sessions/{id}", end, methods=["DELETE"]),
    ],
    exception_handlers={DivingbellError: refused},
    lifespan=lifespan,
)

if __name__ == "__main__":
    # One worker: a session lives in the process that has opened it.
    uvicorn.run(app, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000, workers=1)
