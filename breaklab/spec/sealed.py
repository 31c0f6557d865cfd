"""Sealed specs: what a learner's workspace holds, so that a look at the files spoils nothing.

No secret: anyone can unseal. But neither ``cat`` nor ``grep`` gives the answer away by chance.
"""

from __future__ import annotations

import base64
import binascii
import textwrap
import zlib

_MARK = "# sealed: the answer is in here; `breaklab unseal {bug_id}` shows it"
_BEGIN = "sealed: |"


class SealError(ValueError):
    """A sealed text that can't be read."""


def seal(text: str, bug_id: str) -> str:
    """Return a spec's text in a form that tells its id, and to the eye nothing else."""
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    lines = textwrap.wrap(packed, 88, break_on_hyphens=False)
    return (
        "\n".join(
            [
                _MARK.format(bug_id=bug_id),
                f"bug-id: {bug_id}",
                _BEGIN,
                *(f"  {line}" for line in lines),
            ]
        )
        + "\n"
    )


def is_sealed(text: str) -> bool:
    """Return whether a spec's text is sealed."""
    return text.startswith(_MARK[:10]) and f"\n{_BEGIN}\n" in text


def unsealed(text: str, limit: int) -> str:
    """Return what was sealed, at most ``limit`` bytes, and any other text as it is.

    Raises:
        SealError: the sealed part is damaged, or larger than a spec may be.
    """
    if not is_sealed(text):
        return text
    packed = "".join(text.partition(f"\n{_BEGIN}\n")[2].split())
    unpack = zlib.decompressobj()
    try:
        content = unpack.decompress(base64.b85decode(packed), limit)
        if unpack.unconsumed_tail or not unpack.eof:
            raise SealError
        return content.decode()
    except (ValueError, binascii.Error, zlib.error) as error:
        raise SealError from error
