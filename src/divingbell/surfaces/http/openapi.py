"""The description of the API in the form of OpenAPI 3.1, made from its operations and types."""

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from divingbell.surfaces.http.answers import JSON
from divingbell.surfaces.http.links import links
from divingbell.surfaces.http.operations import BASE, Operation, parameters
from divingbell.surfaces.http.problems import MEDIA_TYPE, Problem

_TYPED = re.compile(r"\{(\w+):\w+\}")
_REFERENCE = "#/components/schemas/{name}"
PROBLEMS = (400, 401, 403, 404, 405, 409, 413, 414, 415, 421, 422, 429, 500, 503)
"""Statuses that every operation may have; each says what to do next."""
MORE = {"PUT": (507,), "GET": (406, 416)}


def description(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the description of the operations."""
    found = tuple(operations)
    types = {each for operation in found for each in _types(operation)} | {Problem}
    ordered = sorted(types, key=lambda each: getattr(each, "__name__", str(each)))
    _, schemas = msgspec.json.schema_components(ordered, ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for operation in found:
        path = BASE + _TYPED.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, found)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Divingbell", "version": version("divingbell")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _types(operation: Operation) -> list[Any]:
    return [each for each in (operation.body, operation.answers) if isinstance(each, type)]


def _operation(operation: Operation, others: Iterable[Operation]) -> dict[str, Any]:
    words = (operation.handler.__doc__ or "").strip()
    told: dict[str, Any] = {
        "operationId": operation.id,
        "summary": words,
        "tags": [operation.id.partition(".")[0]],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": _responses(operation, others),
        "x-scope": operation.need,
    }
    if operation.body is not None:
        is_needed = any(each.required for each in msgspec.structs.fields(operation.body))
        content = {JSON: {"schema": _schema(operation.body)}}
        told["requestBody"] = {"required": is_needed, "content": content}
    elif operation.method == "PUT":
        schema = {"type": "string", "format": "binary"}
        told["requestBody"] = {"content": {"application/octet-stream": {"schema": schema}}}
    return told


def _schema(kind: Any) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([kind], ref_template=_REFERENCE)
    return schema


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in parameters(operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    _, schemas = msgspec.json.schema_components([operation.query], ref_template=_REFERENCE)
    properties = schemas[operation.query.__name__].get("properties", {})
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in properties.items()
    ]


def _responses(operation: Operation, others: Iterable[Operation]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "It is done."}
    if operation.status != 204:
        schema = {} if operation.answers is None else {"schema": _schema(operation.answers)}
        done["content"] = {each: schema if each == JSON else {} for each in operation.media_types}
    if leads := links(operation, others):
        done["links"] = leads
    problem: dict[str, Any] = {
        "description": "A problem.",
        "content": {MEDIA_TYPE: {"schema": _schema(Problem)}},
    }
    statuses = (*PROBLEMS, *MORE.get(operation.method, ()))
    responses = {str(status): problem for status in statuses}
    # What can't be read as a request at all is answered in plain words, before the API sees it.
    responses["400"] = problem | {"content": problem["content"] | {"text/plain": {}}}
    if operation.status == 201:
        responses["200"] = done
    return responses | {str(operation.status): done}
