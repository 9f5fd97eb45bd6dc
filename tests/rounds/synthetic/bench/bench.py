"""The synthetic benchmark: the engine's knobs become a latency, with the noise of a run that can be repeated.

A stage takes its milliseconds times the smallest factor of its knobs: two knobs of one stage are one bottleneck.
The noise depends on the knobs, on the seed and on which run this is, and on nothing else.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import random
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEASUREMENT = re.compile(r"i2-c\d+-b\d+")


def which_run() -> str:
    """What tells this run from all others of its round: where its result goes, from the measurement's folder on."""
    parts = Path(os.environ["ORCH_RESULT"]).parts
    first = next((at for at, part in enumerate(parts) if MEASUREMENT.fullmatch(part)), max(len(parts) - 4, 0))
    return "/".join(parts[first:])


def noise(model: dict[str, Any], factors: dict[str, float]) -> float:
    """A factor near 1, log-normal with the model's sigma."""
    key = json.dumps([model["seed"], factors, which_run()], sort_keys=True)
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return math.exp(float(model["sigma"]) * random.Random(seed).gauss(0.0, 1.0))


def latency(model: dict[str, Any], factors: dict[str, float]) -> float:
    """Milliseconds of all stages, without noise."""
    sharing = {
        stage: [factors[knob] for knob, at in model["knobs"].items() if at == stage] for stage in model["stages"]
    }
    return sum(float(ms) * min(sharing[stage] or [1.0]) for stage, ms in model["stages"].items())


def answers(knobs: dict[str, ModuleType]) -> str:
    """What each part of the engine answers."""
    return "".join(f"{name} {getattr(knob, 'ANSWER', 'right')}\n" for name, knob in knobs.items())


def main() -> int:
    """Run once; the model's own exit status is that of the benchmark."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT))
    model = json.loads((ROOT / "bench" / "model.json").read_text())
    knobs = {name: importlib.import_module(f"engine.{name}.knob") for name in sorted(model["knobs"])}
    factors = {name: float(knob.FACTOR) for name, knob in knobs.items()}
    time.sleep(model["sleep_s"])
    value = latency(model, factors) * noise(model, factors) + model["offset"]
    Path(os.environ["ORCH_OUTPUT"], "answers.txt").write_text(answers(knobs))
    Path(os.environ["ORCH_RESULT"]).write_text(json.dumps({"latency_ms": {"value": value, "unit": model["unit"]}}))
    return int(model["exit"])


if __name__ == "__main__":
    sys.exit(main())
