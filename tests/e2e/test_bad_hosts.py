"""What stands in the way of sealed workspaces: which test shows that it is told before an agent is paid for.

carry: nothing matches
     cli/test_bad_input.py::test_bad_input_is_refused_before_anything_is_created
     cli/test_carrying.py::test_glob_that_brings_nothing_is_refused_by_name_with_the_mend
carry: tracked files
     cli/test_bad_input.py::test_bad_input_is_refused_before_anything_is_created
     cli/test_carrying.py::test_glob_that_brings_nothing_is_refused_by_name_with_the_mend
     activities/test_carry.py::test_what_is_there_already_stays
carry: 20 GB
     cli/test_bad_input.py::test_carrying_more_than_20_gib_is_refused
     cli/test_carrying.py::test_more_than_can_be_copied_is_refused_with_the_size_and_the_largest_folders
set-up: fails
     e2e/test_goal.py::test_failing_setup_is_refused_before_any_agent
     activities/test_shared_setup.py::test_a_failure_is_told_to_all_who_waited_and_tried_anew_by_others
set-up: hangs
     e2e/test_setup.py::test_setup_that_hangs_ends_the_run_at_its_limit_before_any_agent
set-up: dirties tracked files
     e2e/test_setup.py::test_what_setup_makes_is_there_for_agents_and_checks_and_no_change_of_theirs
     activities/test_shared_setup.py::test_what_set_up_made_counts_once_an_agent_changes_it
base: disk full
     cli/test_bad_input.py::test_full_disk_is_refused
     activities/test_bases.py::test_a_full_disk_while_a_base_is_made_is_a_fault_of_the_host
base: case collision
     activities/test_folding.py::test_names_that_are_one_file_there_are_refused_by_both_and_nothing_is_left
     activities/test_folding.py::test_a_folder_and_a_file_and_other_spellings_of_letters_are_one_too
     activities/test_folding.py::test_where_the_disk_tells_them_apart_nobody_is_refused
base: filter missing
     activities/test_contents.py::test_filters_apply_and_a_missing_one_is_named
     activities/test_bases.py::test_a_missing_filter_is_refused
     e2e/test_setup.py::test_baseline_that_cannot_be_checked_out_is_refused_before_any_agent
host: an ordinary user
     cli/test_other_hosts.py::test_doctor_tells_provider_and_sandbox_with_reason_and_mend
     activities/test_overlay.py::test_an_ordinary_user_has_the_same
host: no overlay
     cli/test_other_hosts.py::test_doctor_tells_provider_and_sandbox_with_reason_and_mend
     activities/test_providers.py::test_without_overlays_auto_takes_clones_and_overlay_is_refused
host: no user namespaces
     cli/test_other_hosts.py::test_doctor_tells_provider_and_sandbox_with_reason_and_mend
     cli/test_other_hosts.py::test_required_sandbox_is_refused_before_anything_starts
     cli/test_other_hosts.py::test_required_overlays_are_told_to_be_impossible
host: bubblewrap missing
     cli/test_other_hosts.py::test_required_sandbox_is_refused_before_anything_starts
     activities/sandbox/test_hosts.py::test_without_bubblewrap_the_flaw_says_what_to_install
host: bubblewrap too old
     cli/test_other_hosts.py::test_required_sandbox_is_refused_before_anything_starts
     activities/sandbox/test_hosts.py::test_a_bubblewrap_that_is_too_old_is_not_tried
     activities/sandbox/test_hosts.py::test_a_bubblewrap_that_does_not_keep_anything_out_is_no_sandbox
hosts: two with one id
     worker/test_same_id.py::test_copy_on_the_same_machine_is_refused
     worker/test_same_id.py::test_copy_on_another_machine_is_refused_at_the_same_path_too
     worker/test_same_id.py::test_worker_that_came_later_gives_way_to_the_one_that_serves_its_id
clock: jumps
     activities/test_limits.py::test_clock_that_is_set_neither_brings_a_deadline_nearer_nor_puts_it_off
     activities/test_limits.py::test_machine_that_slept_past_a_deadline_has_passed_it
     activities/test_clock.py::test_deadline_in_a_minute_is_in_a_minute_on_a_host_whose_clock_is_off
artifact store: read-only
     cli/test_preflight.py::test_placement_that_cannot_be_is_refused
     activities/exchange/test_depot.py::test_store_that_takes_no_writes_is_refused
     activities/exchange/test_claiming.py::test_host_that_cannot_reach_the_artifact_store_gives_the_attempt_back
artifact store: gone
     cli/test_preflight.py::test_placement_that_cannot_be_is_refused
     activities/exchange/test_depot.py::test_store_that_goes_away_later_is_a_fault_of_the_host
     e2e/test_exchange.py::test_artifact_store_that_goes_away_costs_no_finished_work
"""

from __future__ import annotations

import re
from typing import Any

CASES = {
    "carry": ["nothing matches", "tracked files", "20 GB"],
    "set-up": ["fails", "hangs", "dirties tracked files"],
    "base": ["disk full", "case collision", "filter missing"],
    "host": ["an ordinary user", "no overlay", "no user namespaces", "bubblewrap missing", "bubblewrap too old"],
    "hosts": ["two with one id"],
    "clock": ["jumps"],
    "artifact store": ["read-only", "gone"],
}


def test_every_case_stands_in_the_table_with_tests_that_exist(kit: Any) -> None:
    table = __doc__ or ""

    assert re.findall(r"^(\S.*): (.+)\n {5}\S", table, re.MULTILINE) == [
        (what, case) for what, cases in CASES.items() for case in cases
    ]
    assert kit.absent_tests(table) == []
