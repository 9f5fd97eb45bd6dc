"""What a benchmark run left in its folder of output: only what lies in it may be looked at by the validator."""

from __future__ import annotations

import errno
import os
from pathlib import Path

MOST = 10_000
"""Files and folders of one output."""

CLOSED = {errno.EACCES, errno.ENAMETOOLONG}
"""How a folder keeps others out: by its rights, and by lying too deep for any path."""


def output_flaw(output: Path) -> str:
    """Why an output is not to be looked at; empty when it may be.

    A link could show the validator a file of the checkout that it runs in, such as the expected answer itself. A target
    that is relative and never goes up stays inside, through whatever other links it leads.
    """
    try:
        return _flaw(output)
    except OSError as error:
        if error.errno not in CLOSED:
            raise
        return f"the output holds a folder that cannot be looked into: {error.strerror}"


def _flaw(output: Path) -> str:
    count, waiting = 0, [output]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            count += 1
            if count > MOST:
                return f"the output holds more than {MOST:,} files"
            shown = ascii(str(Path(entry).relative_to(output)))[:200]
            if entry.is_symlink():
                target = Path(entry).readlink()
                if target.is_absolute() or ".." in target.parts:
                    return f"the output holds a link that leads elsewhere: {shown}"
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry))
            elif not entry.is_file(follow_symlinks=False):
                return f"the output holds something that is no file: {shown}"
    return ""
