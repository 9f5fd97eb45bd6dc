"""The page of a round in the Web UI: lanes, composition and tickets stand on it cell by cell, for a browser to see."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from playwright.async_api import Locator, Page, expect

from orch import Client
from orch.workflows.model.round.view import RoundView

from .test_run_page import Screenshots, details, open_page, save

pytestmark = [pytest.mark.engine, pytest.mark.soak]  # two browsers are more than CI has time for

LANES = """
lane | plane | agent | state | attempts | tickets | best | cost
★ index | algorithm | cmd:set -e sleep 0.0 printf 'FACTOR = %… | done | 1/1 | 1/6 | +10.4% ±0.00% | N s
cache | algorithm | cmd:set -e sleep 0.0 printf 'FACTOR = %… | done | 1/1 | 1/6 | +8.6% ±0.00% | N s
emit | algorithm | cmd:set -e printf 'FACTOR = %s\\nANSWER … | done | 1/1 | 1/6 | - | N s
""".strip().splitlines()
STEPS = """
step | lane | result | alone | here | ratio (log)
1 | index | first | +10.4% | +10.4% ±0.00% | -
2 | cache | skipped | +8.6% | +0.00% ±0.00% | 0.00 (0.00)
""".strip().splitlines()
WHY = "in 4 pairs without noise, {} % asked for; order effect 0.00 %"
TICKETS = f"""
ticket | state | gain | waited | why
★ r1-index-1a7dd638 | passed | +10.4% ±0.00% | N s | gain 10.40 % {WHY.format("0.17")}
★ r1-cache-936412dc | passed | +8.6% ±0.00% | N s | gain 8.60 % {WHY.format("0.16")}
r1-emit-958fc87c | rejected | - | - | link escapes: the link engine/emit/link -> /etc/passwd leaves the checkout
""".strip().splitlines()


async def cells(table: Locator) -> list[str]:
    """The rows of a table; seconds differ from run to run."""
    rows = [
        [(await cell.inner_text()).strip() for cell in await row.locator("th, td").all()]
        for row in await table.locator("tr").all()
    ]
    return [re.sub(r"\b\d+ s\b", "N s", " | ".join(row)) for row in rows]


async def test_page_of_an_ended_round_shows_lanes_composition_and_tickets(
    page: Page, client: Client, rounds: ModuleType, scripted: ModuleType, tmp_path: Path, screenshots: Screenshots
) -> None:
    lanes = [
        rounds.Lane("index", scripted.gain("index", 0.48)),
        rounds.Lane("cache", scripted.gain("cache", 0.57)),
        rounds.Lane("emit", scripted.linked("emit", "/etc/passwd")),
    ]
    repo = rounds.synthetic(tmp_path / "repo", sigma=0.0)
    commands = {"benchmark": rounds.COMMANDS["benchmark"]}
    plan = rounds.write_plan(tmp_path / "plans", repo, lanes, campaign={"campaign": "seen", "commands": commands})
    run = await client.start_round(plan, repo=repo)
    await client.result(run, RoundView)

    await open_page(page, client, run)

    await save(page, screenshots("round-timeline"))
    frame = await details(page)
    await expect(frame.get_by_text("succeeded: done")).to_be_visible(timeout=20_000)
    await save(page, screenshots("round-details"))
    shown = [await cells(table) for table in await frame.locator("table").all()]
    lanes_, steps, tickets = shown
    assert (lanes_, steps, tickets[0]) == (LANES, STEPS, TICKETS[0])
    assert sorted(tickets) == sorted(TICKETS)  # they stand as they came
    for line in ("new incumbent", "noise of a pair: 0.00% at 100 ms", "rerun: index: passed, +10.4%"):
        await expect(frame.get_by_text(line)).to_be_visible()
    summary = page.frame_locator("#user-metadata-summary")
    await expect(summary.get_by_text("round r1 of campaign seen")).to_be_visible()
