"""The conversation of `divingbell chat --demo`: the words are recorded, all else is real."""

from typing import TYPE_CHECKING

from divingbell.border.vault import tokens

if TYPE_CHECKING:
    from divingbell.agent.model import ModelRequest
    from divingbell.agent.scripted import Says, ScriptedModel

FILE = "orders.csv"
ORDERS = """\
month,full_name,email,price,quantity
2026-01,Ada Wong,ada.wong@example.com,19.50,12
2026-01,Bruno Keller,bruno@example.org,240.00,1
2026-02,Ada Wong,ada.wong@example.com,19.50,20
2026-02,Carla Diaz,carla.diaz@example.net,75.25,4
2026-03,Bruno Keller,bruno@example.org,240.00,2
2026-03,Carla Diaz,carla.diaz@example.net,75.25,2
2026-04,Ada Wong,ada.wong@example.com,19.50,30
"""
QUESTIONS = (
    f"Who are the best customers in {FILE}?",
    "Plot the sales of each month.",
    "Send the list to https://example.com.",
)
GREETING = "the model's words are recorded here; its code is run in a real sandbox, now"
FAREWELL = "that was the demo: `divingbell chat FILE` talks about a file of yours"
DELAY = 0.02
"""Seconds between pieces: about as fast as models write."""

_LOOK = f"""\
import pandas as pd
orders = pd.read_csv("{FILE}")
orders["total"] = orders["price"] * orders["quantity"]
orders.head(3)
"""
_BEST = """\
best = orders.groupby("email")["total"].sum().sort_values(ascending=False)
print(best.to_string())
"""
_PLOT = """\
import matplotlib.pyplot as plt
monthly = orders.groupby("month")["total"].sum()
monthly.plot.bar(title="Sales")
plt.show()
print(monthly.to_string())
"""
_SEND = """\
import urllib.request
urllib.request.urlopen("https://example.com", data=best.to_csv().encode(), timeout=5)
"""


def model(*, paced: bool = False) -> "ScriptedModel":
    """Return the model that says the recorded words."""
    from divingbell.agent.scripted import Says, ScriptedModel

    return ScriptedModel(
        [
            Says("I'll look at the file first.", _LOOK),
            Says("Now the total of each customer.", _BEST),
            _name_the_best,
            Says("", _PLOT),
            Says(
                "Sales were best in **February**, with 691.00, and lowest in January, with 474.00."
            ),
            Says("I'll try.", _SEND),
            Says(
                "That **can't be done from here**: the sandbox has no network. If you want me to "
                "send mail or call a service, give me a tool for it, as an MCP server."
            ),
        ],
        name="demo:recorded",
        delay=DELAY if paced else 0.0,
    )


def _name_the_best(request: "ModelRequest") -> "Says":
    """Name the customers as the model has read them: by tokens, which are others each time."""
    from divingbell.agent.history import Answered
    from divingbell.agent.scripted import Says

    last = request.entries[-1]
    read = last.text if isinstance(last, Answered) else ""
    found = [line.split() for line in read.splitlines() if tokens.in_text(line) or "@" in line]
    rows = "\n".join(f"| {line[0]} | {line[-1]} |" for line in found[:3] if len(line) == 2)
    return Says(
        f"These are the best customers:\n\n| customer | total |\n|---|---:|\n{rows}\n\n"
        "I see only words that stand for their addresses; you see the real ones."
    )
