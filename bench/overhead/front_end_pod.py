"""The pod of `front_end.py`: `front_end_pod.py PORT`, with the Python of this checkout or of another one.

The answers of the scripted engine are too long for a command line.
"""

from __future__ import annotations

import sys

import uvloop

from dragoman_bench.sentences import LONG_SENTENCES
from dragoman_service.__main__ import _serve
from dragoman_service.settings import Settings

GENERATION_S = 1.0
SEATS = 4096

if __name__ == "__main__":
    settings = Settings(
        model="org/model", engine="scripted", host="127.0.0.1", port=int(sys.argv[1]),
        engine_args={"first_token_s": GENERATION_S, "answers": LONG_SENTENCES},
        split="sentences", max_num_seqs=SEATS, request_timeout_s=120,
    )  # fmt: skip
    uvloop.run(_serve(settings))
