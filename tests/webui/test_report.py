"""A report in a browser: it asks for nothing, its drawings are there, and it fits narrow and wide, light and dark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from orch.cli.reporting.round_page import RoundReport, round_page
from orch.cli.round_chain import in_order
from orch.workflows.rules.round_document import round_document
from orch.workflows.rules.round_projection import project_round

from ..rounds.stories import composed, fallen_back

Screenshots = Callable[[str], list[Path]]

MORE_WINDOWS = ((400, "light"), (1180, "dark"))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The report of a round that follows another one."""
    view, before = project_round(composed()), fallen_back()
    first = round_document(before, project_round(before)) | {"run": "r0", "round": "r0", "started_at": "2026-03-01"}
    path = tmp_path / "round.html"
    path.write_text(round_page(RoundReport(view, composed(), in_order(view, [first]))), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(400, "dark"), (1180, "light"), *(pytest.param(*case, marks=pytest.mark.soak) for case in MORE_WINDOWS)],
)
async def test_report_asks_for_nothing_and_fits_the_window(
    scheme: Literal["light", "dark"], width: int, report: Path, page: Page, screenshots: Screenshots
) -> None:
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": width, "height": 900})

    await page.goto(report.as_uri())

    await expect(page.get_by_role("heading", name="r1 of campaign parser")).to_be_visible()
    for drawing in ("lanes and composition of round r1", "gains with their errors", "agents and device sets over time"):
        await expect(page.get_by_role("img", name=drawing)).to_be_visible()
    assert (asked, said) == ([report.as_uri()], [])
    assert await page.evaluate("document.documentElement.scrollWidth") <= width, "only drawings and tables scroll"
    dark = await page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark is (scheme == "dark")
    picture = await page.screenshot(full_page=True)
    for file in screenshots(f"report-{scheme}-{width}"):
        await asyncio.to_thread(file.write_bytes, picture)
