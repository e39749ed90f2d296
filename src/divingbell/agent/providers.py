"""Models of Anthropic, OpenAI, Google and of all that speak their protocols.

The only file that imports pydantic_ai, whose model layer knows the wire formats; it takes a second
or two to load, so nothing imports this file before a model is asked.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic_ai import exceptions, messages
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as NativeModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from divingbell.agent import answers
from divingbell.agent.choosing import BY_KEY
from divingbell.agent.history import Answered, Asked, Call, Image, Replied
from divingbell.agent.model import (
    CallPiece,
    Ending,
    FailureKind,
    ModelFailed,
    ModelRequest,
    ModelUsage,
    Pause,
    Piece,
    Reply,
    TextPiece,
    ThinkingPiece,
)
from divingbell.errors import ConfigError
from divingbell.text import one_line

REQUEST_TIMEOUT = 600.0
"""Seconds that one reply may take."""
SILENCE = 120.0
"""Seconds without a word after which a reply is given up."""
MAX_REPLY = 4 << 20
"""Characters of a reply: a stream that does not end is cut off."""
PART = 4 << 10
"""Characters that a part counts for besides its own: a reply may have many that say nothing."""
PAUSES = (1.0, 4.0)
"""Seconds after which a provider is asked again that is busy or out of reach, where it does not say
how long that takes."""
LONGEST_PAUSE = 60.0
"""Seconds: one that wants to be left alone for longer is not waited for."""
MAX_MESSAGE = 500
NO_KEY = "none"
"""The key for a server that asks for none."""

_SETTINGS: dict[str, ModelSettings] = {
    "anthropic": {  # type: ignore[typeddict-unknown-key]
        "anthropic_cache_instructions": True,
        "anthropic_cache_tool_definitions": True,
        "anthropic_cache_messages": True,
        "anthropic_eager_input_streaming": True,
    },
}
_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (exceptions.ModelAuthenticationError, "key"),
    (exceptions.ModelNotFoundError, "model"),
    (exceptions.ModelRateLimitError, "rate"),
    (exceptions.ModelQuotaExceededError, "quota"),
    (exceptions.ModelContextWindowExceededError, "window"),
    (exceptions.ModelTimeoutError, "timeout"),
    (exceptions.ModelRequestTimeout, "timeout"),
    (exceptions.ModelConnectionError, "connection"),
    (exceptions.ModelRequestRejectedError, "rejected"),
    (exceptions.ModelAPIError, "server"),
)
_ADVICE: dict[FailureKind, str] = {
    "key": "the key was not accepted: check it",
    "model": "there is no such model there: check its name",
    "rate": "too many requests: wait a little",
    "quota": "the account has no credit left",
    "window": "the conversation is too long for this model: begin a new one",
    "timeout": "it did not answer in time",
    "connection": "it can't be reached: check the address and the network",
    "rejected": "it refused the request",
    "server": "it failed: try again, or another model",
    "reply": "its reply can't be read: try again, or another model",
}
_PASSING: dict[FailureKind, str] = {
    "rate": "too many requests",
    "server": "it failed",
    "connection": "it can't be reached",
}
"""Failures that may be over in a moment."""
_ENDINGS: dict[str, Ending] = {
    "stop": "answered",
    "tool_call": "called",
    "length": "length",
    "content_filter": "refused",
    "error": "cut",
}


def connect(
    name: str,
    *,
    base_url: str | None = None,
    key: str | None = None,
    tools: bool = True,
    images: bool = True,
    window: int | None = None,
) -> "ProviderModel":
    """Return the model of that name, as in `anthropic:claude-sonnet-5`; nothing is sent yet.

    With `base_url` it is asked there, and is sent `key` alone: no key of the environment goes to an
    address that the provider does not have itself.

    Raises:
        ConfigError: there is no such provider, or its key is missing.
    """
    provider = name.partition(":")[0]
    try:
        infer_provider_class(provider)
    except ValueError:
        raise ConfigError(
            f"{name!r:.80} names no provider that is known: write provider:model, as in "
            f"{', '.join(dict.fromkeys(BY_KEY.values()))} or ollama:qwen3"
        ) from None
    except ImportError as error:
        said = one_line(str(error), MAX_MESSAGE)
        raise ConfigError(f"{provider} is not installed: {said}") from None
    client = answers.client(SILENCE)
    given: dict[str, Any] = {"http_client": client}
    if base_url is not None:
        given["base_url"] = base_url
    if base_url is not None or key is not None:
        given["api_key"] = key or NO_KEY

    def make(provider: str) -> Provider[Any]:
        make_provider: Any = infer_provider_class(provider)
        made: Provider[Any] = make_provider(**given)
        if hasattr(made.client, "max_retries"):
            made.client.max_retries = 0  # the library would wait without a word
        return made

    try:
        native = infer_model(name, make)
    except (exceptions.UserError, ImportError, TypeError) as error:
        raise ConfigError(one_line(str(error), MAX_MESSAGE)) from None
    return ProviderModel(name, native, client, tools, images, window, _hint(provider, base_url))


class ProviderModel:
    """A model that a provider serves."""

    def __init__(
        self,
        name: str,
        native: NativeModel,
        client: httpx2.AsyncClient,
        tools: bool,
        images: bool,
        window: int | None,
        hint: str = "",
    ) -> None:
        """Make one; `hint` is what to try where its server knows nothing of what it is asked."""
        self.name = name
        self._hint = hint
        self._native = native
        self._client = client
        self._tools = tools
        self._images = images
        self._window = window

    @property
    def window(self) -> int | None:
        return self._window or self._native.context_window

    @property
    def sees_images(self) -> bool:
        return self._images and bool(self._native.profile.get("supports_image_input", True))

    @property
    def calls_tools(self) -> bool:
        return self._tools and bool(self._native.profile.get("supports_tools", True))

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        for pause in (*PAUSES, None):
            writing = Writing()
            try:
                async with contextlib.aclosing(self._streamed(request, writing)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelFailed as error:
                seconds = pause if error.retry_after is None else error.retry_after
                may_pass = error.kind in _PASSING and not writing.has_begun
                if pause is None or seconds is None or seconds > LONGEST_PAUSE or not may_pass:
                    raise
                reason = f"{self.name}: {_PASSING[error.kind]}"
            yield Pause(reason, seconds)
            await asyncio.sleep(seconds)

    async def _streamed(self, request: ModelRequest, writing: "Writing") -> AsyncGenerator[Piece]:
        """Ask once."""
        provider = self.name.partition(":")[0]
        settings = ModelSettings(**_SETTINGS.get(provider, {}), timeout=SILENCE)
        if request.output_tokens is not None:
            settings["max_tokens"] = request.output_tokens
        opening = model_request_stream(
            self._native,
            native_messages(request),
            model_settings=settings,
            model_request_parameters=_parameters(request, self.calls_tools),
        )
        deadline = asyncio.get_running_loop().time() + REQUEST_TIMEOUT
        try:
            async with contextlib.AsyncExitStack() as stack:
                # No word is awaited without an end: a server may send signs of life for ever.
                async with asyncio.timeout_at(deadline):
                    streamed = await stack.enter_async_context(opening)
                events = aiter(streamed)
                while True:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events, None)
                    if event is None:
                        break
                    for piece in writing.take(event):
                        yield piece
                response = streamed.get()
        except TimeoutError:
            raise ModelFailed(
                f"{self.name}: {_ADVICE['timeout']} ({REQUEST_TIMEOUT:.0f} s)", "timeout"
            ) from None
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise _failed(self.name, error, self._hint, writing.has_begun) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # What a server sent is no reply at all, and the layer below stumbled over it.
            advice = self._hint or _ADVICE["reply"]
            raise ModelFailed(f"{self.name}: {advice} ({type(error).__name__})", "reply") from error
        yield _reply(response)

    async def close(self) -> None:
        """End its connections. May be called again."""
        await self._client.aclose()


class Writing:
    """A reply as it comes in: what each of its parts has come to."""

    def __init__(self) -> None:
        self._parts: dict[int, messages.ModelResponsePart] = {}
        self._size = 0

    @property
    def has_begun(self) -> bool:
        """Whether a part of it is there."""
        return bool(self._parts)

    def take(self, event: messages.ModelResponseStreamEvent) -> list[Piece]:
        """Return what the event has added."""
        if isinstance(event, messages.PartStartEvent):
            self._parts[event.index] = event.part
            self._size += PART
            return self._shown(event.part, self._text_of(event.part))
        if isinstance(event, messages.PartDeltaEvent):
            before = self._parts.get(event.index)
            if before is None:
                return []
            after: Any = event.delta.apply(before)
            self._parts[event.index] = after
            return self._shown(after, self._text_of(after)[len(self._text_of(before)) :])
        return []

    def _shown(self, part: Any, added: str) -> list[Piece]:
        self._size += len(added)
        if self._size > MAX_REPLY:
            raise ModelFailed(
                f"the reply has more than {MAX_REPLY:,} characters and was cut off", "reply"
            )
        if isinstance(part, messages.ToolCallPart):
            return [CallPiece(part.tool_call_id, part.tool_name, self._text_of(part))]
        if not added:
            return []
        is_thought = isinstance(part, messages.ThinkingPart)
        return [ThinkingPiece(added) if is_thought else TextPiece(added)]

    @staticmethod
    def _text_of(part: Any) -> str:
        if isinstance(part, messages.ToolCallPart):
            return part.args if isinstance(part.args, str) else part.args_as_json_str()
        if isinstance(part, messages.TextPart | messages.ThinkingPart):
            return part.content
        return ""


# To the provider


def native_messages(request: ModelRequest) -> list[messages.ModelMessage]:
    """Return a request as the layer below has it."""
    made: list[messages.ModelMessage] = []
    for entry in request.entries:
        if isinstance(entry, Replied):
            made.append(_native_reply(entry))
            continue
        parts = _native_parts(entry)
        if made and isinstance(made[-1], messages.ModelRequest):
            parts = [*made[-1].parts, *parts]
            made.pop()
        made.append(messages.ModelRequest(parts=parts, instructions=request.instructions))
    return made


def _native_reply(entry: Replied) -> messages.ModelResponse:
    if entry.native is not None:
        [found] = messages.ModelMessagesTypeAdapter.validate_python([entry.native])
        assert isinstance(found, messages.ModelResponse)
        return found
    parts: list[messages.ModelResponsePart] = []
    if entry.text:
        parts.append(messages.TextPart(entry.text))
    parts += [messages.ToolCallPart(call.name, call.arguments, call.id) for call in entry.calls]
    return messages.ModelResponse(parts=parts)


def _native_parts(entry: Asked | Answered) -> list[messages.ModelRequestPart]:
    pictures = [_native_image(image) for image in entry.images]
    if isinstance(entry, Asked):
        return [messages.UserPromptPart([entry.text, *pictures] if pictures else entry.text)]
    returned = messages.ToolReturnPart(entry.call.name, entry.text, entry.call.id)
    if not pictures:
        return [returned]
    shown = f"The images of {entry.call.id}:"
    return [returned, messages.UserPromptPart([shown, *pictures])]


def _native_image(image: Image) -> messages.BinaryContent:
    return messages.BinaryContent(image.data, media_type=image.type)


def _parameters(request: ModelRequest, calls_tools: bool) -> ModelRequestParameters:
    if not calls_tools:
        return ModelRequestParameters()
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.schema),
                strict=False,
            )
            for tool in request.tools
        ]
    )


# From the provider


def _reply(response: messages.ModelResponse) -> Reply:
    texts = [part.content for part in response.parts if isinstance(part, messages.TextPart)]
    thoughts = [part.content for part in response.parts if isinstance(part, messages.ThinkingPart)]
    calls = tuple(
        Call(part.tool_call_id, part.tool_name, Writing._text_of(part))
        for part in response.parts
        if isinstance(part, messages.ToolCallPart)
    )
    # Blanks before a call are no text that a provider takes back.
    parts = [part for part in response.parts if not _is_blank(part)]
    kept = replace(response, parts=parts)
    [native] = messages.ModelMessagesTypeAdapter.dump_python([kept], mode="json")
    entry = Replied("".join(texts), calls, "".join(thoughts), native)
    return Reply(entry, _ending(response, bool(calls)), _usage(response))


def _is_blank(part: messages.ModelResponsePart) -> bool:
    return isinstance(part, messages.TextPart) and not part.content.strip()


def _ending(response: messages.ModelResponse, called: bool) -> Ending:
    """Return how a reply ended. A stream that stops in the middle is told as `stop` by some layers;
    then the raw reason is missing."""
    raw = (response.provider_details or {}).get("finish_reason")
    if response.state != "complete" or not (response.finish_reason and raw):
        return "cut"
    ending = _ENDINGS.get(response.finish_reason, "cut")
    return "called" if called and ending == "answered" else ending


def _usage(response: messages.ModelResponse) -> ModelUsage:
    usage = response.usage
    cost: float | None = None
    with contextlib.suppress(LookupError, ValueError, AssertionError):  # no price is known
        cost = float(response.cost().total_price)
    return ModelUsage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        cost,
    )


def _hint(provider: str, base_url: str | None) -> str:
    """Return what to try where an address of one's own gives no reply; empty for nothing."""
    if base_url is None or not provider.startswith(("openai", "ollama")):
        return ""
    if urlsplit(base_url).path.strip("/"):
        return ""
    shown = one_line(base_url.rstrip("/"), 200)
    return f"nothing of the kind is served at {shown}: most servers want {shown}/v1"


def _failed(name: str, error: Exception, hint: str, has_begun: bool) -> ModelFailed:
    kind: FailureKind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), "reply")
    said = one_line(_said(error), MAX_MESSAGE)
    retry_after = getattr(error, "retry_after", None)
    advice = _ADVICE[kind]
    if has_begun and kind in ("connection", "timeout"):
        advice = "its reply broke off in the middle: ask again"
    elif hint and kind in ("model", "reply"):
        advice = hint
    if kind == "rate" and retry_after is not None:
        advice = f"too many requests: again in {retry_after:.0f} s"
    return ModelFailed(f"{name}: {advice} ({said})", kind, retry_after)


def _said(error: Exception) -> str:
    """Return what the provider said, without the layer's own words where that is possible."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
    return str(error) or type(error).__name__
