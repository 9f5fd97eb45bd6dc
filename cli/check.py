"""`orch check`: validate a contract file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import json_option
from .talk import clean, out, out_json, plural, say

if TYPE_CHECKING:
    from ..workflows.model.contract import Contract
    from .yaml_lines import Document


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--repo", type=click.Path(path_type=Path), default=".", show_default=True, help="A folder of its git repository."
)
@json_option
def check(file: Path, repo: Path, *, as_json: bool) -> None:
    """Validate a contract FILE: every refusal with its line and the mend, else the digest and what is protected."""
    from .contract_file import check_contract
    from .derived_protection import resolve
    from .reading import reader, top

    contract, document = check_contract(file)
    facts: list[str] = []
    if contract is not None:
        contract, covered = resolve(contract, reader(top(repo)))
        facts = [*map(clean, covered), *_carried(repo, contract, document)]
    contract = None if document.refusals else contract
    refusals = sorted(set(document.refusals))
    if as_json:
        digest, protected = (contract.digest, contract.protected) if contract else (None, ())
        told = {"file": str(file), "digest": digest, "protected": protected, "facts": facts}
        out_json({**told, "refusals": [vars(refusal) for refusal in refusals]})
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
