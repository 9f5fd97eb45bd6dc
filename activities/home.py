"""Where things lie in the state directory: paths only, no effects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..workflows.model.attempt import AttemptKey

STATE_VERSION = 1
"""The layout's version, kept in `version`; a newer one is refused."""


@dataclass(frozen=True)
class Home:
    """The state directory (`$ORCH_STATE`).

    state/
    ├── version  host-id
    ├── engine/            the local engine's database, locks, logs and addresses
    ├── slots/  ports/     one file per occupied slot or port block, naming its attempt
    ├── stores/<key>/      store.git, its lock, verdicts, reservations
    ├── exchanges/         one file per repository and artifact store it was published in
    ├── pilots/<id>/       pilot.json, and each of its runs that is finished
    ├── campaigns/<id>/    what rounds made of a campaign: state.json, revisions.jsonl, rounds/
    └── runs/<id>/         ledger.jsonl, attempts/<name>/ (prompt, output, workspace)
    """

    root: Path

    @property
    def engine(self) -> Path:
        """The local engine's folder."""
        return self.root / "engine"

    @property
    def host_id(self) -> Path:
        """The file that holds this host's stable id."""
        return self.root / "host-id"

    @property
    def slots(self) -> Path:
        """The folder of occupied slots."""
        return self.root / "slots"

    @property
    def ports(self) -> Path:
        """The folder of occupied port blocks."""
        return self.root / "ports"

    def store(self, key: str) -> Path:
        """The folder of one repository's store."""
        return self.root / "stores" / key

    def pilot(self, pilot: str) -> Path:
        """The folder of one pilot."""
        return self.root / "pilots" / pilot

    def campaign(self, campaign: str) -> Path:
        """The folder of one campaign's record."""
        return self.root / "campaigns" / campaign

    def run(self, run: str) -> Path:
        """The folder of one run."""
        return self.root / "runs" / run

    def attempt(self, key: AttemptKey) -> Path:
        """The folder of one attempt: prompt, output, workspace."""
        return self.run(key.run) / "attempts" / key.name
