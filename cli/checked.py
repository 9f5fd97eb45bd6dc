"""What came of the files of a round: all refusals and warnings at their lines, else what they compile to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..workflows.errors import RefusedError
from ..workflows.model.round.facts import Flaw, Source
from ..workflows.model.round.pilot import PilotPlan
from ..workflows.model.round.plan import RoundPlan
from .yaml_lines import Document


@dataclass
class Checked:
    """What came of a file.

    Attributes:
        document: the file.
        digest: of what it compiles to; empty when anything is refused.
        summary: what it is, in a few words.
        protected: the globs that belong to no lane.
        facts: lines worth reading.
    """

    document: Document
    digest: str = ""
    summary: str = ""
    protected: tuple[str, ...] = ()
    facts: list[str] = field(default_factory=list)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The file and those it names."""
        return (self.document,)

    @property
    def warnings(self) -> list[str]:
        """A line for each warning."""
        return [line for document in self.documents for line in document.said(document.warnings)]

    def error(self) -> RefusedError:
        """All refusals as one error."""
        lines = [line for document in self.documents for line in document.said(document.refusals)]
        return RefusedError("\n".join(lines), hint=f"`orch check {self.document.name}` lists every refusal")


@dataclass
class CheckedRound(Checked):
    """What came of a round plan's file, or of a campaign's alone.

    Attributes:
        said: the protected globs that both files name, in their order.
        other: its campaign's file; None when it is not there.
        plan: the frozen plan; None when anything is refused, and of a campaign alone.
    """

    said: tuple[str, ...] = ()
    other: Document | None = None
    plan: RoundPlan | None = None

    @property
    def documents(self) -> tuple[Document, ...]:
        """Both files, the plan's first."""
        return (self.document, *([self.other] if self.other else []))

    @property
    def campaign(self) -> Document:
        """The campaign's file, where there is one."""
        return self.other or self.document

    def note(self, flaws: Iterable[Flaw]) -> None:
        """Tell flaws at their lines."""
        for flaw in flaws:
            document = self.campaign if flaw.source is Source.CAMPAIGN else self.document
            (document.warn if flaw.warning else document.refuse)(flaw.where, flaw.message, flaw.mend)


@dataclass
class CheckedPilot(Checked):
    """What came of a pilot's file.

    Attributes:
        round: what came of its round plan; None when it is not there.
        plan: the frozen pilot; None when anything is refused.
    """

    round: CheckedRound | None = None
    plan: PilotPlan | None = None

    @property
    def documents(self) -> tuple[Document, ...]:
        """Its own file, the round plan's and the campaign's."""
        return (self.document, *(self.round.documents if self.round else ()))
