"""The G and M cases, faults of worktrees, snapshots and measurements that users have met: which test shows each.

Where a case cannot apply, the reason stands in the place of a test.

G01  Locks of the user's git delay nothing; no branch is made.
     activities/test_worktree.py::test_locks_of_others_do_not_matter
     activities/test_worktree.py::test_threads_open_side_by_side
     e2e/test_cases.py::test_locks_signing_and_operations_of_the_user_neither_stop_a_run_nor_change
G02  Workspaces are made and removed side by side.
     activities/test_worktree.py::test_processes_open_and_close_side_by_side
G03  There is no option to let agents share a folder: each has its own, whatever is asked for.
     e2e/test_faults.py::test_agents_work_in_workspaces_of_their_own
G04  Looking at a workspace locks nothing in it.
     activities/test_worktree.py::test_polling_does_not_disturb_an_agent
G06  No agent reaches the shared config.
     activities/test_clone.py::test_git_works_inside_and_reaches_nothing_outside
     e2e/test_fingerprint.py::test_agents_that_attack_git_reach_neither_the_user_nor_the_others
G07  An unborn HEAD has a baseline and stays unborn.
     activities/test_snapshots.py::test_unborn_branch_has_a_baseline_without_parent
     activities/promotion/test_branches.py::test_a_repository_without_commits_gets_its_first_branch
     e2e/test_fingerprint.py::test_only_the_winners_paths_move_and_only_when_promoted
G09  A workspace that is gone fails its own candidate; nothing starts where there is no folder.
     activities/test_worktree.py::test_lost_workspace_is_made_again_from_its_snapshot
     activities/test_jobs.py::test_what_cannot_be_started_says_why
     e2e/test_cases.py::test_workspace_removed_by_its_agent_fails_that_candidate_alone
G12  Without its own `.git` a workspace belongs to no repository above it.
     activities/test_worktree.py::test_git_above_is_not_touched_by_a_workspace_without_its_own
     activities/test_candidates.py::test_damaged_git_loses_nothing
G14  The baseline is what the user sees.
     activities/test_snapshots.py::test_baseline_is_what_the_user_sees
     e2e/test_faults.py::test_agents_start_from_what_the_user_sees_and_then_from_the_winner
G15  No workspace is used twice; what is measured is the tree that is named; what is said to be gone is gone.
     e2e/test_cases.py::test_every_verdict_says_what_was_measured_by_what_and_where
     activities/collecting/test_collecting.py::test_collection_frees_what_it_said_to_what_du_reports
G16  Results are stored before anything is cleaned up, and go only when they are old.
     e2e/test_fingerprint.py::test_collecting_touches_no_live_run_no_result_and_nothing_of_the_users
     e2e/test_gc.py::test_nothing_is_deleted_before_somebody_says_so
     activities/collecting/test_collecting.py::test_result_with_an_unfinished_promotion_stays
G17  Nothing is pruned in the user's repository, and in the store nothing that a run may need.
     activities/test_store.py::test_shared_files_are_out_of_reach_of_those_who_write_objects
     activities/collecting/test_collecting.py::test_objects_of_a_store_stay_while_a_run_may_use_it_or_they_are_young
     activities/collecting/test_collecting.py::test_run_that_begins_between_look_and_removal_keeps_its_objects
     e2e/test_fingerprint.py::test_collecting_touches_no_live_run_no_result_and_nothing_of_the_users
G18  A link in the place of a folder is only unlinked.
     activities/test_worktree.py::test_link_in_the_place_of_a_workspace_is_not_followed
     activities/collecting/test_collecting.py::test_link_in_the_place_of_a_run_or_of_its_workspace_is_never_followed
     activities/collecting/test_collecting.py::test_workspace_reached_through_a_link_is_kept_and_told
G19  What links inside a workspace lead to stays; carried folders are copies.
     activities/test_worktree.py::test_links_inside_a_workspace_are_removed_not_followed
     activities/test_carry.py::test_links_stay_links_but_never_lead_to_the_source
G20  What may not go is told before anything of it is touched.
     activities/collecting/test_collecting.py::test_result_is_kept_while_a_process_stands_in_it_and_says_which
     activities/collecting/test_collecting.py::test_store_goes_only_without_runs_unused_for_long_and_never_the_users_objects
G21  Submodules do not keep a workspace.
     activities/test_candidates.py::test_moved_submodule_is_put_back_with_a_warning
G22  Submodules that are populated are carried.
     activities/test_contents.py::test_submodules_stay_links_and_their_files_can_be_carried
     e2e/test_fingerprint.py::test_only_the_winners_paths_move_and_only_when_promoted
G23  Edits inside submodules are told as not recorded.
     activities/test_contents.py::test_submodules_stay_links_and_their_files_can_be_carried
     activities/test_candidates.py::test_moved_submodule_is_put_back_with_a_warning
G25  Nothing of `orch` lies in the user's repository.
     activities/test_store.py::test_state_directory_inside_the_repository_is_refused
     e2e/test_fingerprint.py::test_nothing_changes_however_runs_end
G27  A missing filter is named, a pointer stays as it is, no hook runs.
     activities/test_contents.py::test_filters_apply_and_a_missing_one_is_named
     activities/test_contents.py::test_pointer_of_a_filter_nobody_configured_is_kept
     activities/test_contents.py::test_users_hooks_never_fire
G28  No hook of the user's fires.
     activities/test_contents.py::test_users_hooks_never_fire
     e2e/test_cases.py::test_locks_signing_and_operations_of_the_user_neither_stop_a_run_nor_change
G29  Agents' own commits run nobody's hooks.
     activities/test_git_cases.py::test_commit_of_an_agent_runs_no_hook_wherever_the_user_keeps_them
G30  Nothing is signed.
     activities/test_contents.py::test_neither_identity_nor_signing_key_is_needed
     activities/test_candidates.py::test_agent_commits_without_identity_or_key
G31  No identity is needed.
     activities/test_contents.py::test_neither_identity_nor_signing_key_is_needed
     activities/test_candidates.py::test_agent_commits_without_identity_or_key
G32  Names are bytes.
     activities/test_snapshots.py::test_odd_names_are_kept
     activities/promotion/test_shapes.py::test_a_shape_arrives_and_goes_back
     e2e/test_fingerprint.py::test_only_the_winners_paths_move_and_only_when_promoted
G35  Names that differ in case alone are two files where the disk tells them apart, and refused where it does not.
     activities/test_git_cases.py::test_names_that_differ_in_case_alone_are_two_files_whatever_the_setting_says
     activities/test_folding.py::test_names_that_are_one_file_there_are_refused_by_both_and_nothing_is_left
G36  Git works in the sandbox.
     e2e/test_faults_of_hosts.py::test_sandboxed_agent_writes_nowhere_but_in_its_own_workspace
     activities/test_clone.py::test_sandbox_may_write_its_own_git_directory_and_nothing_of_the_store
G37  What an agent plants in its git runs nowhere else.
     e2e/test_fingerprint.py::test_agents_that_attack_git_reach_neither_the_user_nor_the_others
     activities/test_candidates.py::test_what_the_agent_did_to_its_git_does_not_matter
G38  A foreign repository is refused in one line.
     activities/test_repository.py::test_foreign_repository_is_refused_and_no_setting_is_changed
G39  Room is looked for first, workspaces go at once, and sizes are told.
     cli/test_bad_input.py::test_full_disk_is_refused
     e2e/test_faults_of_hosts.py::test_every_candidates_tree_is_kept_and_every_workspace_is_gone
     activities/promotion/test_faults.py::test_a_full_disk_is_named_before_anything_is_touched
     activities/collecting/test_collecting.py::test_want_of_room_takes_the_oldest_results_first
G40  Line ends arrive as they are.
     activities/test_contents.py::test_line_endings_arrive_as_the_user_has_them
     activities/promotion/test_shapes.py::test_line_endings_follow_the_users_settings
     activities/promotion/test_shapes.py::test_new_attributes_apply_to_what_arrives_with_them
G43  What could not be removed is told, and the status says so.
     activities/collecting/test_collecting.py::test_removal_that_fails_is_told_and_nothing_is_counted
     activities/collecting/test_collecting.py::test_what_cannot_be_deleted_is_told_with_what_is_in_the_way_and_not_counted
     e2e/test_gc.py::test_nothing_is_deleted_before_somebody_says_so
G44  Nobody loses the folder he stands in.
     activities/collecting/test_collecting.py::test_result_is_kept_while_a_process_stands_in_it_and_says_which
     cli/test_exits.py::test_deleted_folder_is_one_line_and_2
G46  What stands in the way is named.
     activities/promotion/test_faults.py::test_a_folder_that_may_not_be_written_is_named
     activities/test_git_cases.py::test_index_that_cannot_be_read_is_named_as_the_cause
G47  Carried paths reach every copy, are nobody's change, and never a commit.
     e2e/test_setup.py::test_what_setup_makes_is_there_for_agents_and_checks_and_no_change_of_theirs
     activities/test_git_cases.py::test_carried_environment_is_its_copys_own
     cli/test_carrying.py::test_what_is_ignored_usual_and_not_carried_is_told_with_its_size
G48  What the user has in progress stays as it is.
     activities/promotion/test_promotion.py::test_an_operation_in_progress_is_named_and_left_alone
     e2e/test_cases.py::test_locks_signing_and_operations_of_the_user_neither_stop_a_run_nor_change
G49  Files are written in the named checkout alone, and no ref moves.
     activities/promotion/test_promotion.py::test_a_linked_worktree_is_promoted_alone
     activities/promotion/test_branches.py::test_it_works_while_other_worktrees_and_a_rebase_are_open
G50  Killed anywhere, nothing is left that nobody sees.
     e2e/test_kill.py::test_killed_anywhere_run_ends_like_an_uninterrupted_one
     e2e/test_gc.py::test_everything_of_a_terminated_run_is_collected
     activities/test_worktree.py::test_leftovers_of_an_interrupted_opening_are_replaced
G51  Every layout of a repository is read.
     activities/test_repository.py::test_linked_worktrees_also_of_a_bare_repository
     activities/test_repository.py::test_git_directory_elsewhere_and_submodules
     activities/test_repository.py::test_what_has_no_working_tree_is_refused
     e2e/test_fingerprint.py::test_only_the_winners_paths_move_and_only_when_promoted
G52  The executable bit arrives; other permissions survive where the file stays.
     activities/test_candidates.py::test_executable_bit_arrives_though_the_user_ignores_it
     activities/promotion/test_shapes.py::test_the_executable_bit_arrives_where_git_does_not_look_at_it
     activities/promotion/test_shapes.py::test_permissions_that_git_does_not_know_survive_an_edit
G53  All paths to a repository mean the same one.
     activities/test_repository.py::test_any_path_and_any_link_to_it_mean_the_same
     activities/test_store.py::test_key_is_readable_and_stable
M02  What was not measured ranks below everything that was.
     workflows/rules/test_tournament.py::test_a_crash_ranks_below_any_measured_value
     e2e/test_cases.py::test_what_could_not_be_measured_ranks_below_everything_measured
M04  Rungs pass or do not; there is no metric that could be misspelt before `start round`. A rung's own progress is
     taken whole or not at all.
     activities/measuring/test_ladder.py::test_progress_report
M05  Nothing is timed before `start round`. Equal trees are measured once, and a tie is decided by a stated key.
     e2e/test_faults_of_hosts.py::test_equal_trees_are_measured_once_and_the_gate_afresh
     workflows/rules/test_tournament.py::test_reasons_carry_both_sides_of_the_key_that_decided
M06  Nothing is timed before `start round`: there is no variance to be read.
M07  Nothing is timed before `start round`; the baseline is measured in the same run as its candidates.
     e2e/test_cases.py::test_every_verdict_says_what_was_measured_by_what_and_where
M08  A rung that the head passed and a candidate fails counts against it, whatever it gained elsewhere. (Single tests
     are compared by `start evolve`, which is not there yet.)
     workflows/rules/test_tournament.py::test_losses_are_counted_only_against_a_measured_incumbent
     workflows/rules/test_tournament.py::test_keys_decide_in_their_order
M10  Measurements side by side have ports and folders of their own.
     e2e/test_faults_of_hosts.py::test_checks_of_two_candidates_do_not_meet
     activities/test_places.py::test_every_attempt_has_ports_of_its_own_until_it_gives_them_back
M11  The frozen checks decide.
     e2e/test_cases.py::test_no_tampering_with_the_checks_wins
     e2e/test_tampering.py::test_check_that_is_swapped_and_swapped_back
M12  Checks that import the user's tree are warned of.
     activities/test_editable.py::test_only_an_editable_install_from_inside_the_tree_is_warned_of
     activities/test_git_cases.py::test_carried_environment_is_its_copys_own
M13  Every verdict says of what tree it is.
     e2e/test_cases.py::test_every_verdict_says_what_was_measured_by_what_and_where
"""

from __future__ import annotations

import re
from typing import Any

CASES = (
    *(f"G{number:02}" for number in (1, 2, 3, 4, 6, 7, 9, 12, *range(14, 24), 25, *range(27, 33), 35, 36, 37, 38, 39)),
    *(f"G{number}" for number in (40, 43, 44, *range(46, 54))),
    *(f"M{number:02}" for number in (2, 4, 5, 6, 7, 8, 10, 11, 12, 13)),
)
"""Those that were collected; the others never were."""


def test_every_case_stands_in_the_table_once_and_every_test_it_names_exists(kit: Any) -> None:
    cases = re.findall(r"^([GM]\d\d)  \S", __doc__ or "", re.MULTILINE)

    assert cases == list(CASES)
    assert kit.absent_tests(__doc__) == []
