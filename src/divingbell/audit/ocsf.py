"""Records as events of OCSF, the schema that security tools read: https://schema.ocsf.io

Calls, executions, commands, approvals, reveals and skills are *API Activity*, sign-ins are
*Authentication*, and all else is a *Base Event*. The record itself is in `unmapped`.
"""

from datetime import datetime
from importlib.metadata import version
from typing import Any

Record = dict[str, Any]

OUR_VERSION = version("divingbell")  # it is in a file: 2 ms each time
VERSION = "1.5.0"
BASE, AUTHENTICATION, API = (
    (0, 0, "Base Event"),
    (3, 3002, "Authentication"),
    (6, 6003, "API Activity"),
)
"""The number of the category, that of the class, and its name."""
_API = ("call.", "execution.", "command.", "approval.", "revealed", "skill.")
_SIGN_INS = ("signed_in", "sign_in.failed")
_OTHER, _LOGON = 99, 1
_INFORMATIONAL, _LOW, _MEDIUM = 1, 2, 3
_UNKNOWN, _SUCCESS, _FAILURE = 0, 1, 2
_STATUS_NAMES = {_UNKNOWN: "Unknown", _SUCCESS: "Success", _FAILURE: "Failure"}
_SEVERITY_NAMES = {_INFORMATIONAL: "Informational", _LOW: "Low", _MEDIUM: "Medium"}


def event_of(record: Record) -> dict[str, Any]:
    """Return a record as an event of OCSF."""
    kind = str(record.get("kind"))
    category, number, name = _class_of(kind)
    activity = _LOGON if number == AUTHENTICATION[1] else _OTHER
    status, severity = _status(record), _severity(record)
    event: dict[str, Any] = {
        "activity_id": activity,
        "activity_name": "Logon" if activity == _LOGON else kind,
        "category_uid": category,
        "class_uid": number,
        "class_name": name,
        "type_uid": number * 100 + activity,
        "time": _milliseconds(str(record.get("at"))),
        "message": _message(record),
        "severity_id": severity,
        "severity": _SEVERITY_NAMES[severity],
        "status_id": status,
        "status": _STATUS_NAMES[status],
        "metadata": _metadata(record),
        "unmapped": record,
    }
    if code := record.get("code") if isinstance(record.get("code"), str) else "":
        event["status_code"] = code
    if number == API[1]:
        event |= {"actor": _actor(record), "api": _api(record), "src_endpoint": _origin(record)}
    elif number == AUTHENTICATION[1]:
        event |= {"user": _user(record), "service": {"name": str(record.get("server"))}}
    return event


def _class_of(kind: str) -> tuple[int, int, str]:
    if kind in _SIGN_INS:
        return AUTHENTICATION
    return API if kind.startswith(_API) else BASE


def _metadata(record: Record) -> dict[str, Any]:
    chain, number = record.get("chain"), record.get("number")
    made: dict[str, Any] = {
        "version": VERSION,
        "uid": f"{chain}/{number}",
        "sequence": number,
        "log_name": str(chain),
        "product": {
            "name": "Divingbell",
            "vendor_name": "Divingbell",
            "version": OUR_VERSION,
        },
    }
    if "call" in record:
        made["correlation_uid"] = f"{chain}/call/{record['call']}"
    return made


def _actor(record: Record) -> dict[str, Any]:
    made: dict[str, Any] = {"user": _user(record), "app_name": record.get("client") or "divingbell"}
    if session := record.get("session"):
        made["session"] = {"uid": str(session)}
    return made


def _user(record: Record) -> dict[str, Any]:
    return {"name": record.get("user") or "unknown", "type_id": 1 if record.get("user") else 0}


def _api(record: Record) -> dict[str, Any]:
    tool = str(record.get("tool") or record.get("skill") or "")
    made: dict[str, Any] = {"operation": tool or str(record["kind"]).partition(".")[0]}
    said = record.get("arguments") or record.get("code")
    if isinstance(said, dict):
        made["request"] = {"uid": str(record.get("number")), "data": said}
    if outcome := record.get("outcome") or record.get("status"):
        made["response"] = {"message": str(outcome)}
    return made


def _origin(record: Record) -> dict[str, Any]:
    return {"name": record.get("client") or "divingbell"}


def _status(record: Record) -> int:
    said = record.get("outcome") or record.get("status") or record.get("answer")
    if str(record.get("kind")).startswith(("revealed", "skill.")):
        return _SUCCESS
    if said is None:
        return _UNKNOWN
    return _SUCCESS if said in ("ok", "yes", "always", "session") else _FAILURE


def _severity(record: Record) -> int:
    if record.get("outcome") == "denied" or record.get("kind") in ("revealed", "log.gap"):
        return _MEDIUM
    return _LOW if _status(record) == _FAILURE else _INFORMATIONAL


def _message(record: Record) -> str:
    who = record.get("user") or "nobody in particular"
    named = ("tool", "skill", "server", "session")
    what = next((record[name] for name in named if record.get(name)), "")
    return f"{record.get('kind')} {what} of {who}".replace("  ", " ")


def _milliseconds(at: str) -> int:
    """Return a time; 0 for what is none: one forged line must not hide those that come after it."""
    try:
        return round(1000 * datetime.fromisoformat(at).timestamp())
    except (ValueError, OverflowError):
        return 0
