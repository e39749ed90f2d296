"""Columns of texts that pandas keeps with pyarrow: written as they lie in memory, and so read.

No text becomes an object of Python, which is most of what texts cost otherwise. Nothing here is a
reader of Arrow's own files: of what others have written, pyarrow gets buffers whose offsets were
checked, and checks that each text is UTF-8. Shared by host and inside.
"""

from typing import Any

from divingbell_inside import columns, texts
from divingbell_inside.columns import Broken, Piece, Reader, Spec, Writer


def put_texts(writer: Writer, array: Any, missing: Any) -> Spec:
    """Write an array of texts of pandas; `missing` says which are, or is None.

    Raises:
        NotHeld: they are too many.
    """
    numpy, pyarrow = columns.library("numpy"), columns.library("pyarrow")
    writer.count_texts(len(array))
    found = pyarrow.array(array, pyarrow.large_string())
    if missing is not None:
        # Under a missing value may still lie the text that was there before: it stays here.
        found = columns.library("pyarrow.compute").fill_null(found, "")
    pieces: list[Piece] = []
    lengths = []
    for chunk in found.chunks if isinstance(found, pyarrow.ChunkedArray) else [found]:
        if len(chunk):
            _, starts, raw = chunk.buffers()
            end = chunk.offset + len(chunk)
            offsets = numpy.frombuffer(starts, "<i8")[chunk.offset : end + 1]
            pieces.append(memoryview(raw or b"")[int(offsets[0]) : int(offsets[-1])])
            lengths.append(numpy.diff(offsets))
    return texts.put_buffers(writer, lengths, pieces, missing)


def take_texts(reader: Reader, spec: Spec, count: int) -> Any:
    """Read so many texts, as an array of pyarrow.

    Raises:
        Broken: the offsets lie, or the texts are no UTF-8.
    """
    numpy, pyarrow = columns.library("numpy"), columns.library("pyarrow")
    offsets, raw, missing = texts.take_buffers(reader, spec, count)
    buffers = [pyarrow.py_buffer(offsets), pyarrow.py_buffer(raw)]
    found = pyarrow.LargeStringArray.from_buffers(count, *buffers)
    try:
        found.validate(full=True)  # others run meanwhile: it holds no lock of Python's
    except pyarrow.ArrowInvalid:
        raise Broken("a text is not UTF-8") from None
    if missing is None:
        return found
    there = pyarrow.py_buffer(numpy.packbits(~missing, bitorder="little"))
    return pyarrow.LargeStringArray.from_buffers(count, *buffers, there)
