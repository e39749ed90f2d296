"""Long texts cut to a number of tokens, head and tail."""

from divingbell.journal import tokens


async def cut(text: str, most: int, kept_in: str | None = None) -> str:
    """Return the text in about `most` tokens: its head, its tail, and how much is between.

    `kept_in` names the file that has all of it.
    """
    if len(text) <= most:  # a token has at least one character
        return text
    total = (await tokens.count_later(text)).tokens
    if total <= most:
        return text
    share = most / total
    head = text[: int(len(text) * share * 0.6)]
    tail = text[len(text) - int(len(text) * share * 0.4) :]
    where = f"; all of it is in {kept_in}" if kept_in else ""
    return f"{head}\n[… {total:,} tokens in all, {total - most:,} are not shown{where} …]\n{tail}"
