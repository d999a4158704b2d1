"""SECURITY.md: each of its points and each row of its table has tests, which are named here."""

import ast
import re
import sys
from pathlib import Path

from tests.faults.mixer import __file__ as mixer
from tests.faults.sidecar import INITIALIZE, call, serving
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[1]
SERVER = [sys.executable, mixer]

# The program, which writes each address that it connects to or looks up.
WATCHED = """
import sys
from mcp_abridge.cli import main
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        with open(sys.argv[1], "a") as file:
            print(event, arguments[1:] if event == "socket.connect" else arguments[:2], file=file)
sys.addaudithook(watch)
sys.exit(main(sys.argv[2:]))
"""


def test_it_connects_to_nothing_but_the_server(tmp_path: Path) -> None:
    log = tmp_path / "connections"
    program = [sys.executable, "-c", WATCHED, str(log)]
    with Wire([*program, "--", *SERVER]) as wire:
        for raw in (INITIALIZE, call(2, "echo")):
            wire.write(raw + b"\n")
            assert b'"result"' in wire.line()
    assert not log.exists()
    with serving("--", *SERVER) as server:
        with Wire([*program, server.url()]) as wire:
            for raw in (INITIALIZE, call(2, "echo")):
                wire.write(raw + b"\n")
                assert b'"result"' in wire.line()
        addresses = set(re.findall(r"'[^']+', \d+", log.read_text()))
        assert addresses == {f"'127.0.0.1', {server.port}"}


TESTS = {
    "It talks to the server": "test_security: connects_to_nothing_but_the_server; "
    "transports/client/test_forward_proxy: through_the_proxy_of_the_environment, netrc_file",
    "A server's answers stay": "storage/test_snapshots: old_snapshots_go_without_any_request, "
    "a_folder_that_others_can_open_is_refused; cli/test_hook: answers_are_kept_for_an_hour; "
    "faults/test_records: names_and_sizes_are_on_disk_and_no_text; "
    "cli/test_call: call_prints_the_view_of_a_client_s_model_and_saves",
    "Secrets belong": "cli/wrap/test_secrets: no_secret_of_a_configuration_is_printed; "
    "faults/test_callers: credentials_of_a_client_on_stdio, credentials_go_to_their_server_only",
    "`wrap` puts the URL": "cli/wrap/test_secrets: no_url_and_no_header_stands_among_the_words, "
    "nobody_sees_url_and_headers_in_the_list_of_processes",
    "`wrap` keeps the originals": "cli/wrap/test_files: no_copy_is_left_once_all_of_a_file, "
    "a_run_that_is_killed_at_a_file_operation",
    "With the extra `images`": "transports/workers/test_pictures: an_image_that_takes_too_long, "
    "the_process_has_limits_of_its_own, the_process_has_no_secret_of_the_environment",
    "Text of others": "cli/test_terminal: a_hostile_text_in_a_verbs_line_is_seen, "
    "an_answer_is_unchanged_in_a_pipe; cli/wrap/test_files: words_for_a_terminal",
    "`--redact` masks": "storage/test_redaction: a_password_is_masked_in_whatever_form",
    "Rule files are data": "ruleset/loading/test_plugins: nothing_is_run_that_is_not_allowed; "
    "query/test_patterns: any_expression_of_a_model_is_evaluated_or_refused",
    "No verb of the installed": "cli/test_current_folder: no_verb_runs_what_the_current_folder_has",
    "`hook`, `weigh` and": "cli/test_hook: a_server_that_names_a_users_file_gets_nothing, "
    "an_answer_that_copilot_saved_or_shows_twice; "
    "cli/test_weigh: an_answer_that_the_client_saved_is_weighed_whole_and_no_other_file; "
    "cli/test_unreadable: one_bad_file_in_a_folder_has_its_line",
    "A page of `replay`": "cli/page/test_sums: the_policy_allows_the_style_and_the_script; "
    "cli/page/test_calls: is_for_its_owner_alone, only_who_has_the_address_is_answered, "
    "the_words_of_a_browser_open_the_page_once",
    "`serve` off loopback": "faults/test_callers: a_token_opens_a_route, an_evil_origin_or_host; "
    "faults/test_whose: a_server_never_finds_the_sidecars_own_secrets",
    "A rule file given by": "test_server_changes: what_protected_calls_of_a_session_goes_on, "
    "a_server_that_changed_since_an_earlier_session, a_required_file_lets_no_tool",
    "Answers are untrusted": "document/test_own_names: a_server_never_speaks_in_our_voice, "
    "no_name_and_no_value_breaks_out_of_a_notice; document/test_fences: the_warning_around_rows",
    "A token is known": "faults/test_whose: a_token_that_replaces_another_of_its_name; "
    "transports/sidecar/test_access: a_token_that_was_revoked_while",
    "A token without": "ruleset/loading/test_config_model: a_token_without_a_name_is_named",
    "Variables that say": "test_first_calls: an_account_of_the_environment_does_not_read, "
    "an_account_that_is_named_finds_its_answers",
    "Names in a store": "storage/test_scope: a_name_in_a_store_cannot_be_computed_from_a_guess",
    "the caller": "faults/test_whose: the_log_names_the_caller_of_each_call",
    "a process": "faults/test_whose: an_answer_that_breaks_off_never_carries_another_callers",
    "a session": "faults/test_whose: a_session_of_another_caller_does_not_exist, "
    "a_session_before_a_url_is_of_the_token_that_began_it; "
    "callers/test_two_callers: the_stream_of_another_token_does_not_exist",
    "answers in memory": "callers/test_two_callers: neither_of_two_callers_ever_sees",
    "answers under": "callers/test_two_callers: a_stored_answer_never_goes_to_another_account; "
    "test_first_calls: a_call_of_one_account_is_not_taken_for_another_ones",
    "log lines": "faults/test_whose: a_log_line_about_a_call_never_reaches_another_caller",
    "who gives way": "faults/test_whose: sessions_of_one_caller_end_none_of_anothers, "
    "a_caller_gets_a_process_although_another_one_has_them_all; "
    "storage/test_snapshots: in_memory_no_caller_pushes_out_what_another_one_keeps",
}


def test_each_point_of_the_page_has_tests() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    points = re.findall(r"^(?:- |\| (?!---|\|))(.+)", page, re.MULTILINE)
    assert [point for point in points if not point.startswith(tuple(TESTS))] == []
    assert [words for words in TESTS if not any(each.startswith(words) for each in points)] == []
    for tests in TESTS.values():
        for file, _, names in (each.partition(": ") for each in tests.split("; ")):
            tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text())
            there = [each.name for each in tree.body if hasattr(each, "name")]
            for name in names.split(", "):
                assert any(each.startswith(f"test_{name}") or f"_{name}" in each for each in there)
