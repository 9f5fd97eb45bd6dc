"""`orch check`: validate a contract file."""

from __future__ import annotations

from pathlib import Path

import click

from .exits import ExitStatus
from .params import json_option
from .talk import out, out_json, plural, say


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, *, as_json: bool) -> None:
    """Validate a contract FILE: every refusal with its line and the mend, else the digest."""
    from .contract_file import check_contract

    contract, document = check_contract(file)
    refusals = sorted(set(document.refusals))
    if as_json:
        digest = contract.digest if contract else None
        out_json({"file": str(file), "digest": digest, "refusals": [vars(refusal) for refusal in refusals]})
    elif contract is not None:
        out(f"{file}: {plural(len(contract.rungs), 'rung')}, digest {contract.digest}")
    else:
        say(f"error: {document.error().message}")
    if contract is None:
        raise SystemExit(ExitStatus.REFUSED)
