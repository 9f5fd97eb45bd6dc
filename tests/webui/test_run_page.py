"""The run's page in the Web UI: who won and why stands on it, for a browser to see."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import FrameLocator, Page, expect

from orch import Client
from orch.cli.options import GoalOptions
from orch.worker.engine import run_url, status
from orch.workflows.model.view import RunStatus

pytestmark = [pytest.mark.engine]

Screenshots = Callable[[str], list[Path]]

LADDER = tuple(f'test "$(cat level)" -ge {n}' for n in (1, 2, 3))
STEPS = ("take the baseline", "measure the baseline", "gate of iteration 1", "promote to worktree", "candidate 3")
TABLE = """
candidate | agent | status | rungs | changed | cost | reason
★ 3 | cmd:echo 3 > level | passed | 3/3 | yes | N s | won (decided by rungs)
2 | cmd:sh half_a_fix.sh | red | 2/3 | yes | N s | fewer rungs (passed 2, winner 3)
1 | cmd:true | red | 0/3 | no | N s | fewer rungs (passed 0, winner 3)
4 | cmd:echo exit > tests/check.sh | red | 0/3 | no | N s | fewer rungs (passed 0, winner 3); 1 protected path restored
""".strip()


@pytest.fixture
def project(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """A repository at level 0 with a test that an agent may try to edit."""
    (tmp_path / "half_a_fix.sh").write_text("echo 2 > level\n")
    return make_repo(tmp_path / "project", {"level": "0\n", "tests/check.sh": "exit 1\n"})


async def start(client: Client, project: Path, *, seal: bool = False) -> str:
    """Start four agents of which the third wins."""
    half = f"cmd:sh {project.parent}/half_a_fix.sh"
    agents = ("cmd:true", half, "cmd:echo 3 > level", "cmd:echo exit > tests/check.sh")
    options = GoalOptions(
        goal="raise the level",
        repo=project,
        verify=LADDER,
        protect=("tests/**",),
        candidates=4,
        agent=agents,
        seal=seal,
    )
    return await client.start_goal(options)


async def open_page(page: Page, client: Client, run: str) -> None:
    """Open the page that the command line prints."""
    up = await status(client.home)
    await page.goto(run_url(up.ui_url, up.namespace, run))
    await expect(page.get_by_role("heading", name=run)).to_be_visible(timeout=20_000)


async def details(page: Page) -> FrameLocator:
    """Open the tab where the Web UI renders summary and details, each in a frame of its own."""
    await page.get_by_text("User Metadata").first.click()
    return page.frame_locator("#user-metadata-current-details")


async def save(page: Page, files: list[Path]) -> None:
    picture = await page.screenshot()
    for file in files:
        await asyncio.to_thread(file.write_bytes, picture)


async def test_page_of_an_ended_run_names_each_step_and_shows_who_won_and_why(
    page: Page, client: Client, project: Path, screenshots: Screenshots
) -> None:
    run = await start(client, project)
    await client.result(run)

    await open_page(page, client, run)

    for step in STEPS:
        await expect(page.get_by_text(step).first).to_be_visible(timeout=20_000)
    await save(page, screenshots("run-timeline"))
    frame = await details(page)
    await expect(frame.get_by_text("succeeded: done")).to_be_visible(timeout=20_000)
    rows = [
        [(await cell.inner_text()).strip() for cell in await row.locator("th, td").all()]
        for row in await frame.locator("tr").all()
    ]
    assert re.sub(r"\| \d+ s \|", "| N s |", "\n".join(" | ".join(row) for row in rows)) == TABLE
    await expect(frame.get_by_text("gate: passed")).to_be_visible()
    await expect(page.frame_locator("#user-metadata-summary").get_by_text("raise the level")).to_be_visible()
    await save(page, screenshots("run-details"))


async def test_page_of_a_waiting_run_says_what_it_waits_for(
    page: Page, client: Client, project: Path, screenshots: Screenshots
) -> None:
    run = await start(client, project, seal=True)
    async with asyncio.timeout(60):
        while (await client.view(run)).status is not RunStatus.WAITING:
            await asyncio.sleep(0.1)

    await open_page(page, client, run)
    frame = await details(page)

    await expect(frame.get_by_text("waiting: seal waiting")).to_be_visible(timeout=20_000)
    await expect(frame.get_by_text("baseline passes 0 of 3 rungs")).to_be_visible()
    await save(page, screenshots("run-waiting"))
    await client.reject(run)
    await client.result(run)
