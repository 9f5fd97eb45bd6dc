"""`orch check`: validate a contract, a campaign, a round plan or a pilot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exits import ExitStatus
from .params import json_option
from .talk import clean, out, out_json, plural, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..activities.home import Home
    from ..activities.repository import Repository
    from ..workflows.model.contract import Contract
    from .checked import Checked
    from .file_kinds import FileKind
    from .yaml_lines import Document


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--repo", type=click.Path(path_type=Path), default=".", show_default=True, help="A folder of its git repository."
)
@json_option
def check(file: Path, repo: Path, *, as_json: bool) -> None:
    """Validate FILE, a contract, a campaign, a round plan or a pilot, told apart by their keys.

    Every refusal with its line and the mend, else warnings, the digest and what is protected.
    """
    from .file_kinds import FileKind, kind_of

    match kind_of(file):
        case FileKind.CONTRACT:
            _check_contract(file, repo, as_json=as_json)
        case kind:
            _check_round(file, repo, kind, as_json=as_json)


def _check_contract(file: Path, repo: Path, *, as_json: bool) -> None:
    from .contract_file import check_contract
    from .derived_protection import resolve
    from .reading import reader, top

    contract, document = check_contract(file)
    facts: list[str] = []
    if contract is not None:
        contract, covered = resolve(contract, reader(top(repo)))
        facts = [*map(clean, covered), *_carried(repo, contract, document)]
    contract = None if document.refusals else contract
    if as_json:
        digest, protected = (contract.digest, contract.protected) if contract else (None, ())
        told = {"file": str(file), "kind": "contract", "digest": digest, "protected": protected, "facts": facts}
        out_json({**told, **_rows(document)})
    elif contract is not None:
        out(f"{file}: {plural(len(contract.rungs), 'rung')}, digest {contract.digest}")
        for fact in facts:
            say(fact)
    else:
        say(f"error: {document.error().message}")
    if contract is None:
        raise SystemExit(ExitStatus.REFUSED)


def _carried(repo: Path, contract: Contract, document: Document) -> list[str]:
    """Look at the carried paths, where there is a repository; what is of no use is refused at its line."""
    from ..activities.repository import inspect
    from ..workflows.errors import RefusedError
    from .carrying import flaws, suggestions

    try:
        found = inspect(repo)
    except RefusedError:
        return []
    for flaw in flaws(found, contract.carry):
        document.refuse(("carry", flaw.number), flaw.message, flaw.mend)
    return suggestions(found, contract.carry)


def _check_round(file: Path, repo: Path, kind: FileKind, *, as_json: bool) -> None:
    """A round plan with its campaign, a campaign alone, or a pilot with all it names."""
    from ..activities.repository import inspect
    from ..worker.settings import load_settings
    from .pilot_file import check_pilot
    from .round_plan import check_campaign_alone, check_round

    looks: dict[str, Callable[[Path, Repository, Home], Checked]]
    looks = {"campaign": check_campaign_alone, "round": check_round, "pilot": check_pilot}
    checked = looks[kind](file, inspect(repo), load_settings().home)
    if as_json:
        out_json(_told(checked, kind))
    elif checked.digest:
        out(f"{file}: {checked.summary}, digest {checked.digest}")
        for fact in checked.facts:
            say(fact)
    else:
        say(f"error: {clean(checked.error().message)}")
    if not as_json:
        for warning in checked.warnings:
            say(f"warning: {clean(warning)}")
    if not checked.digest:
        raise SystemExit(ExitStatus.REFUSED)


def _told(checked: Checked, kind: str) -> dict[str, Any]:
    return {
        "file": checked.document.name,
        "kind": kind,
        "digest": checked.digest or None,
        "protected": checked.protected,
        "facts": checked.facts,
        **_rows(*checked.documents),
    }


def _rows(*documents: Document) -> dict[str, list[dict[str, Any]]]:
    """Warnings and refusals, each with its file and line."""
    return {
        which: [
            {"file": document.name, **vars(told)}
            for document in documents
            for told in sorted(set(getattr(document, which)))
        ]
        for which in ("warnings", "refusals")
    }
