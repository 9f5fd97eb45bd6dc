"""The benchmark: processor milliseconds that sqlparse needs to parse the corpus, the best of several times.

The result file gets the metric, the output folder a digest of every statement's tree for the validator.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIMES = 5


def shape(token: Any) -> Iterator[str]:
    """A tree in words: the class, type and text of every node."""
    yield f"{type(token).__name__} {token.ttype} {token.value!r}\n"
    for child in getattr(token, "tokens", ()):
        yield from shape(child)


def main() -> None:
    """Parse the corpus so many times, and write what came of it."""
    sys.path[:0] = [str(HERE.parent), str(HERE)]
    import sqlparse
    from corpus import corpus

    text, spent = corpus(), []
    for _ in range(TIMES):
        begun = time.process_time()
        statements = sqlparse.parse(text)
        spent.append(time.process_time() - begun)
    digest = hashlib.sha256("".join(word for one in statements for word in shape(one)).encode()).hexdigest()
    Path(os.environ["ORCH_OUTPUT"], "trees.txt").write_text(digest + "\n")
    result = {"parse_ms": {"value": min(spent) * 1000, "unit": "ms"}}
    Path(os.environ["ORCH_RESULT"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
