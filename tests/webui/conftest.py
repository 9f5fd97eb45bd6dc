"""A local engine for the Web UI's tests, and a headless browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # the suite may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a headless Chromium; a missing browser fails the test and is never skipped."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.fail("no Chromium on the PATH: install the package `chromium` (Debian, Fedora, Arch)")
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser, args=FLAGS)
        yield await chromium.new_page(viewport={"width": 1500, "height": 1300})
        await chromium.close()


@pytest.fixture
def screenshots(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Where a screenshot goes: the test's own folder, and $ORCH_SCREENSHOTS when it is set."""
    folders = [tmp_path, *(Path(folder) for folder in [os.environ.get("ORCH_SCREENSHOTS", "")] if folder)]

    def files(name: str) -> list[Path]:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        return [folder / f"{name}.png" for folder in folders]

    return files
