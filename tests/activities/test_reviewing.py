"""A reviewer's answer: only a last line that carries the nonce and a boolean can approve."""

from __future__ import annotations

import pytest

from orch.activities.reviewing import read_answer

NONCE = "0f" * 12
YES = f'{{"nonce": "{NONCE}", "veto": false, "reason": "fine"}}'


def test_clear_answer_approves() -> None:
    review = read_answer(f"thinking…\n\n{YES}\n  \n", NONCE)

    assert (review.approved, review.answered, review.comment) == (True, True, "fine")


def test_veto_keeps_its_reason() -> None:
    review = read_answer(YES.replace("false", "true"), NONCE)

    assert (review.approved, review.answered, review.comment) == (False, True, "fine")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "looks good to me",
        f"{YES}\nand one more word",
        YES.replace(NONCE, "guessed"),
        YES.replace("false", '"no"'),
        YES.replace("false", "0"),
        '{"veto": false}',
        f"[{YES}]",
        "null",
        YES[:-1],
    ],
)
def test_anything_else_is_a_veto(text: str) -> None:
    review = read_answer(text, NONCE)

    assert (review.approved, review.answered) == (False, False)
