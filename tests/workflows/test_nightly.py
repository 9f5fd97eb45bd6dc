"""What a scheduled run shows of its repository to whoever may list runs."""

from __future__ import annotations

from orch.workflows import nightly
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import GoalRequest

REQUEST = GoalRequest(
    run="nightly",
    repo="/srv/quokka",
    host="h",
    contract=Contract(goal="g", rungs=(Rung(name="r", run="true"),)),
    agents=("cmd:true",),
)


def test_a_labelled_run_shows_its_label_in_search_attributes_and_its_path_in_the_memo() -> None:
    labelled = REQUEST.model_copy(update={"label": "1234"})

    shown = [{pair.key.name: pair.value for pair in nightly._attributes(r)} for r in (REQUEST, labelled)]

    assert [pairs["OrchRepo"] for pairs in shown] == ["/srv/quokka", "1234"]
    assert [nightly._memo(r).get("repo") for r in (REQUEST, labelled)] == [None, "/srv/quokka"]
