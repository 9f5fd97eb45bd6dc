"""`orch check`: validate a contract file."""

from __future__ import annotations

from pathlib import Path

import click

from .exits import ExitStatus
from .params import json_option
from .talk import clean, out, out_json, plural, say


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
    covered: tuple[str, ...] = ()
    if contract is not None:
        contract, covered = resolve(contract, reader(top(repo)))
    refusals = sorted(set(document.refusals))
    if as_json:
        digest = contract.digest if contract else None
        protected = contract.protected if contract else ()
        told = {"file": str(file), "digest": digest, "protected": protected}
        out_json({**told, "refusals": [vars(refusal) for refusal in refusals]})
    elif contract is not None:
        out(f"{file}: {plural(len(contract.rungs), 'rung')}, digest {contract.digest}")
        for line in covered:
            say(clean(line))
    else:
        say(f"error: {document.error().message}")
    if contract is None:
        raise SystemExit(ExitStatus.REFUSED)
