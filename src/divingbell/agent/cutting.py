"""Long texts cut to a number of tokens, head and tail."""

from divingbell.journal import tokens


async def cut(text: str, most: int) -> str | None:
    """Return the text in about `most` tokens: its head, its tail, and how much is between.

    None where it is short enough as it is.
    """
    if len(text) <= most:  # a token has at least one character
        return None
    total = (await tokens.count_later(text)).tokens
    if total <= most:
        return None
    share = most / total
    head = text[: int(len(text) * share * 0.6)]
    tail = text[len(text) - int(len(text) * share * 0.4) :]
    return f"{head}\n[… {total:,} tokens in all, {total - most:,} are not shown …]\n{tail}"
