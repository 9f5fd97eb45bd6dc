"""With a key the engine learns no word of a run, and the Web UI shows all by the worker's codec server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError
from temporalio.worker import Replayer

from orch import Client
from orch.activities.home import Home
from orch.cli.options import GoalOptions
from orch.cli.plan import resolve_goal
from orch.cli.schedules import Timing, create
from orch.worker import engine
from orch.worker.assembly import workflow_runner
from orch.worker.codec import SealingCodec, converter, load_codec
from orch.worker.connection import connect
from orch.worker.keys import add_key
from orch.workflows.goal import Goal
from orch.workflows.host import ORCH_QUEUE
from orch.workflows.model.view import RunStatus, RunView

from .database import found, unpacked

pytestmark = [pytest.mark.engine]

Screenshots = Callable[[str], list[Path]]

PLACES = "goal rung agent answer file output note review seal schedule failure folder"
NONCE = 'grep -o \'nonce": "[0-9a-f]*\' "$ORCH_PROMPT_FILE" | head -1 | cut -d\'"\' -f3'


def words(kind: str) -> dict[str, str]:
    """A word for every place that may leak one, found nowhere else."""
    return {place: f"{kind}{place}quokka" for place in PLACES.split()}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path / "state")
    await engine.ensure_up(home)
    yield home
    await engine.down(home)


def options(repo: Path, word: dict[str, str]) -> GoalOptions:
    """A goal in two iterations: an agent that says something, leaves a file and at first crashes; a reviewer.

    What they say is put together by the shell, so that it is in no command line.
    """
    said = {place: text.replace("quokka", "''quokka") for place, text in word.items()}
    work = f"echo {said['answer']} >&2; echo 1 >> level; touch {said['file']}.txt; test $(wc -l < level) -gt 2"
    approve = f"""printf '{{"nonce": "%s", "veto": false, "reason": "%s"}}\\n' $({NONCE}) {said["review"]}"""
    return GoalOptions(
        goal=f"raise it {word['goal']}",
        repo=repo,
        verify=(f"test $(wc -l < level) -ge 3 || {{ echo {said['output']}; false; }} # {word['rung']}",),
        agent=(f"cmd:{work} || exit 3 # {word['agent']}",),
        candidates=1,
        sign_off=f"cmd:{approve}",
        seal=True,
    )


async def say_everywhere(home: Home, repo: Path, word: dict[str, str]) -> RunView:
    """A run with a note and a seal, a schedule, and a run that fails: every word reaches the engine."""
    client = Client(home)
    run = await client.start_goal(options(repo, word))
    async with asyncio.timeout(60):
        while (await client.view(run)).status is not RunStatus.WAITING:
            await asyncio.sleep(0.05)
    await client.note(run, word["note"])
    await client.approve(run, comment=word["seal"])
    plan = resolve_goal(options(repo, {**word, "goal": word["schedule"]}), state=home.root)
    await create(client.link, plan.request.run, plan.request, Timing(cron=("0 2 * * *",)))
    await fail(home, word["failure"])
    return await client.result(run)


async def fail(home: Home, word: str) -> None:
    """A run whose failure quotes its input."""
    temporal = await connect(home)
    with pytest.raises(WorkflowFailureError) as failed:
        await temporal.execute_workflow("Goal", {"repo": [word]}, id=f"goal-bad-{len(word)}", task_queue=ORCH_QUEUE)
    assert word in str(failed.value.cause)


async def test_the_engine_holds_no_word_of_an_encrypted_run_and_the_web_ui_shows_them(
    home: Home, make_repo: Callable[..., Path], tmp_path: Path, page: Page, screenshots: Screenshots
) -> None:
    plain, sealed = words("plain"), words("sealed")
    repos = [make_repo(tmp_path / word["folder"], {"level": "0\n"}) for word in (plain, sealed)]
    first = await say_everywhere(home, repos[0], plain)
    before = await engine.status(home)
    add_key(home)
    await engine.ensure_up(home)
    up = await engine.status(home)

    view = await say_everywhere(home, repos[1], sealed)

    assert (first.status, view.status) == (RunStatus.SUCCEEDED, RunStatus.SUCCEEDED), (first.reason, view.reason)
    assert found(home.engine, plain.values()) == set(plain.values()), "the scan finds what is there"
    assert found(home.engine, sealed.values()) == set()
    rows = {row.id: row for row in await Client(home).list()}
    assert (rows[view.id].goal, rows[view.id].repo) == (f"raise it {sealed['goal']}", str(repos[1]))
    assert (await Client(home).view(first.id)).goal == f"raise it {plain['goal']}"
    await replay(home, view.id)
    assert (before.codec_url, up.address, up.ui_url) == ("", before.address, before.ui_url)
    await see_decoded(page, up, view.id, sealed)
    await save(page, screenshots("run-decoded"))
    await see_encrypted(page, up, view.id)
    await save(page, screenshots("run-encrypted"))


async def replay(home: Home, run: str) -> None:
    """The encrypted history still fits the code."""
    history = await (await connect(home)).get_workflow_handle(run).fetch_history()
    data_converter = converter(load_codec(home))
    replayer = Replayer(workflows=[Goal], workflow_runner=workflow_runner(), data_converter=data_converter)
    assert (await replayer.replay_workflow(history)).replay_failure is None


async def see_decoded(page: Page, up: engine.EngineStatus, run: str, word: dict[str, str]) -> None:
    """The run's page shows its words by the codec server."""
    await page.goto(engine.run_url(up.ui_url, up.namespace, run))
    await expect(page.get_by_role("heading", name=run)).to_be_visible(timeout=20_000)
    await expect(page.get_by_text(word["rung"]).first).to_be_visible(timeout=20_000)
    await page.get_by_text("User Metadata").first.click()
    summary, details = (page.frame_locator(f"#user-metadata-{name}") for name in ("summary", "current-details"))
    await expect(summary.get_by_text(word["goal"])).to_be_visible(timeout=20_000)
    await expect(details.get_by_text("succeeded: done")).to_be_visible(timeout=20_000)


async def see_encrypted(page: Page, up: engine.EngineStatus, run: str) -> None:
    """Where nobody decodes, the same page shows no word."""
    await page.route(f"{up.codec_url}/**", lambda route: route.abort())
    await page.goto(engine.run_url(up.ui_url, up.namespace, run))
    await expect(page.get_by_role("heading", name=run)).to_be_visible(timeout=20_000)
    await expect(page.get_by_text("encryption-key-id").first).to_be_visible(timeout=20_000)
    assert "quokka" not in await page.content()


async def save(page: Page, files: list[Path]) -> None:
    picture = await page.screenshot()
    for file in files:
        await asyncio.to_thread(file.write_bytes, picture)


async def test_the_scan_finds_what_is_only_compressed() -> None:
    (squeezed,) = await SealingCodec(None, compress=True).encode([Payload(data=b"quokka " * 500)])

    assert b"quokka" not in squeezed.data
    assert any(b"quokka" in text for text in unpacked(b"a row " + squeezed.SerializeToString()))
