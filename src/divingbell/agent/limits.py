"""How far an agent may go before it stops and says so."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of one answer."""

    turns: int = 40
    """Requests to the model."""
    tokens: int | None = None
    """Tokens that are read and written, all requests together."""
    money: float | None = None
    """US dollars, where the price of the model is known."""
    failing_cells: int = 5
    """Cells that fail one after the other."""
    output_tokens: int = 4_000
    """Tokens of one cell's output that the model is shown."""
