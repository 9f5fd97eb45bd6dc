"""The benchmark: how long sqlparse takes for the corpus, in times that the library's tokenizer takes for a text.

Both are done in turns, a slice of the corpus and then the text, and a slice counts by its median: where neighbours on
the same processor make everything slower for seconds, by half and more, the share of the two moves by a few percent.

The result file gets the metric, the output folder a digest of every statement's tree for the validator.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
TIMES, SLICE = 3, 12
TEXT = (HERE / "corpus.py").read_text() * 14
"""Tokenized in about as many milliseconds as a slice is parsed in."""


def shape(token: Any) -> Iterator[str]:
    """A tree in words: the class, type and text of every node."""
    yield f"{type(token).__name__} {token.ttype} {token.value!r}\n"
    for child in getattr(token, "tokens", ()):
        yield from shape(child)


def tokenized() -> None:
    """What everything is compared with."""
    for _ in tokenize.generate_tokens(io.StringIO(TEXT).readline):
        pass


def spent(work: Callable[[], object]) -> float:
    """Processor seconds."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Parse the corpus so many times, and write what came of it."""
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    import sqlparse
    from corpus import slices

    script = slices(SLICE)
    shares: dict[str, list[float]] = {part: [] for part in script}
    for _ in range(TIMES):
        before = spent(tokenized)
        for part in script:
            took, after = spent(lambda part=part: sqlparse.parse(part)), spent(tokenized)
            shares[part].append(2 * took / (before + after))
            before = after
    trees = (word for part in script for statement in sqlparse.parse(part) for word in shape(statement))
    Path(os.environ["ORCH_OUTPUT"], "trees.txt").write_text(hashlib.sha256("".join(trees).encode()).hexdigest() + "\n")
    result = {"parse": {"value": sum(map(median, shares.values())), "unit": "texts"}}
    Path(os.environ["ORCH_RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
