"""`orch check`: validate a contract file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import json_option
from .talk import out, out_json, plural, say

if TYPE_CHECKING:
    from ..workflows.model.contract import Contract
    from .yaml_lines import Document


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, *, as_json: bool) -> None:
    """Validate a contract FILE: every refusal with its line and the mend, else the digest."""
    from .contract_file import check_contract

    contract, document = check_contract(file)
    facts = _carried(file, contract, document) if contract else []
    contract = None if document.refusals else contract
    refusals = sorted(set(document.refusals))
    if as_json:
        digest = contract.digest if contract else None
        told = [vars(refusal) for refusal in refusals]
        out_json({"file": str(file), "digest": digest, "refusals": told, "facts": facts})
    elif contract is not None:
        out(f"{file}: {plural(len(contract.rungs), 'rung')}, digest {contract.digest}")
        for fact in facts:
            say(fact)
    else:
        say(f"error: {document.error().message}")
    if contract is None:
        raise SystemExit(ExitStatus.REFUSED)


def _carried(file: Path, contract: Contract, document: Document) -> list[str]:
    """Look at the carried paths, where the file lies in a repository; what is of no use is refused at its line."""
    from ..activities.repository import inspect
    from ..workflows.errors import RefusedError
    from .carrying import flaws, suggestions

    try:
        found = inspect(file.parent)
    except RefusedError:
        return []
    for flaw in flaws(found, contract.carry):
        document.refuse(("carry", flaw.number), flaw.message, flaw.mend)
    return suggestions(found, contract.carry)
