"""LibreTranslate's files: `POST /translate_file`."""

from __future__ import annotations

from dragoman_protocols.api import Peek, Request
from dragoman_protocols.libretranslate.fields import read_fields
from dragoman_protocols.offer import Offer
from dragoman_router.dialects.asking import uploaded


def peek_file(request: Request, offer: Offer) -> Peek:
    """The pair, and the beginning of the file."""
    upload = uploaded(request)
    return Peek((read_fields(request).need(offer),), 0, sample=upload.sample)
