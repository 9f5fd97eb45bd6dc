"""A program that talks like an agent (pi's events), as much and as fast as it is told; run as `pi` by its spec's `bin`.

CHATTY_BYTES or CHATTY_SECONDS and CHATTY_RATE say how much. It ends with a closing answer and its usage.
"""

import json
import os
import sys
import time

TEXT = "x" * 180
USAGE = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.001}}


def event(text: str, stop: str) -> bytes:
    """One closed message of the assistant as a line."""
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "content": content, "stopReason": stop, "usage": USAGE}
    return json.dumps({"type": "message_end", "message": message}).encode() + b"\n"


def main() -> None:
    """Talk, then end as an agent does."""
    if "--version" in sys.argv:
        sys.stdout.write("99.0.0\n")
        return
    out, line = sys.stdout.buffer, event(TEXT, "toolUse")
    out.write(json.dumps({"type": "session", "id": "11111111-2222-4333-8444-555555555555"}).encode() + b"\n")
    if size := int(os.environ.get("CHATTY_BYTES", "0")):
        block = line * 256
        for _ in range(size // len(block)):
            out.write(block)
    else:
        rate, seconds = int(os.environ["CHATTY_RATE"]), float(os.environ["CHATTY_SECONDS"])
        begun, sent = time.monotonic(), 0
        while (passed := time.monotonic() - begun) < seconds:
            due = int(passed * rate) - sent
            out.write(line * due)
            out.flush()
            sent += due
            time.sleep(0.01)
    with open("answer.txt", "w", encoding="utf-8") as file:  # noqa: PTH123 - imports as little as it can
        file.write(str(os.getpid()))
    out.write(event("done", "stop"))
    out.write(b'{"type": "agent_end", "messages": []}\n')
    out.flush()


if __name__ == "__main__":
    main()
