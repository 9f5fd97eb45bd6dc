"""Programs that talk as real agents do: shell scripts, with words for what such an agent prints and keeps.

Every dialect has the same words: `begin` takes up the session it was told, or begins one; `say TEXT [TOKENS [USD]]` is
a turn of the model, with what it used where that is said; `stop [TEXT]` is the agent's last word, `fail WORDS` that of
an API error, `approve` that of a reviewer. Texts go into JSON as they are. `$id` names the session, `$record` the file
that keeps it, `$before` is what it had used, where the agent counts by session; what came on stdin is `$HOME/stdin`.
"""

from __future__ import annotations

from pathlib import Path

_SESSION = r"""
[ "$1" != --version ] || { echo 99.0.0; exit; }
id=$(cat /proc/sys/kernel/random/uuid) from=
while [ $# -gt 0 ]; do
    case $1 in
    --session | --resume | resume) id=$2 from=$2 ;;
    --fork | fork) from=$2 ;;
    --fork-session) id=$(cat /proc/sys/kernel/random/uuid) ;;
    esac
    shift
done
cat > "$HOME/stdin"
own() {  # FOLDER PREFIX LINE: find or begin the session's record; one that belongs to another folder is refused
    mkdir -p "$1"
    record=$(echo "$1"/*$from.jsonl)
    if [ -z "$from" ]; then record="$1/$2$id.jsonl"; echo "$3" > "$record"; fi
    grep -qF "\"cwd\": \"$(pwd -P)\"" "$record" || { echo "Error: no session $from here" >&2; exit 7; }
    if [ "$record" != "$1/$2$id.jsonl" ]; then cp "$record" "$1/$2$id.jsonl"; record="$1/$2$id.jsonl"; fi
    before=$(sed -n 's/^used //p' "$record" | tail -n 1)
    before=${before:-0} used=${before:-0}
}
approve() {  # as a reviewer's last word
    nonce=$(grep -o 'nonce": "[0-9a-f]*' "$ORCH_PROMPT_FILE" | head -n 1 | cut -d'"' -f3)
    stop '{\"nonce\": \"'$nonce'\", \"veto\": false, \"reason\": \"fine\"}'
}
spend() { used=$((used + $1)); echo "used $used" >> "$record"; }
"""

_PI = r"""
begin() {
    own "$PI_CODING_AGENT_SESSION_DIR" 0_ '{"type": "session", "id": "'$id'", "cwd": "'$(pwd -P)'"}'
    echo '{"type": "session", "id": "'$id'"}'
}
message() {  # TEXT REASON ERROR [TOKENS [USD]]
    printf '{"type": "message_end", "message": {"role": "assistant", "timestamp": %s000' $(date +%s)
    printf ', "stopReason": "%s", "errorMessage": "%s", "content": [{"type": "text", "text": "%s"}]' "$2" "$3" "$1"
    [ -z "$4" ] || printf ', "usage": {"input": %s, "output": 0, "cost": {"total": %s}}' "$4" "${5:-0}"
    echo '}}'
}
say() { echo '{"type": "turn_start"}'; message "$1" toolUse '' "$2" "$3"; }
stop() { message "${1:-done}" stop ''; echo '{"type": "agent_end", "messages": []}'; }
fail() { message '' error "$1"; echo '{"type": "agent_end", "messages": []}'; }
"""

_CLAUDE = r"""
begin() {
    mine=$CLAUDE_CONFIG_DIR/projects/here
    for found in "$CLAUDE_CONFIG_DIR"/projects/*/$from.jsonl; do [ ! -e "$found" ] || mine=${found%/*}; done
    own "$mine" '' '{"cwd": "'$(pwd -P)'"}'
    echo '{"type": "system", "subtype": "init", "session_id": "'$id'", "model": "m", "claude_code_version": "2.1.300"}'
}
say() {
    turns=$((turns + 1))
    printf '{"type": "assistant", "message": {"id": "m%s", "content": [{"type": "text", "text": "%s"}]' $turns "$1"
    [ -z "$2" ] || { printf ', "usage": {"input_tokens": %s}' "$2"; spend $2; }
    echo '}}'
}
result() {  # TEXT IS_ERROR: its counts are the session's, runs before this one included
    printf '{"type": "result", "subtype": "success", "is_error": %s, "result": "%s"' "$2" "$1"
    printf ', "modelUsage": {"m": {"inputTokens": %s, "costUSD": %s.0}}}\n' "$used" "$used"
}
stop() { result "${1:-done}" false; }
fail() { result "$1" true; }
"""

_CODEX = r"""
begin() {
    own "$CODEX_HOME/sessions/2026/01/01" rollout-0- '{"payload": {"cwd": "'$(pwd -P)'"}, "cwd": "'$(pwd -P)'"}'
    echo '{"type": "thread.started", "thread_id": "'$id'"}'
    echo '{"type": "turn.started"}'
}
say() {
    printf '{"type": "item.completed", "item": {"type": "agent_message", "text": "%s"}}\n' "$1"
    [ -z "$2" ] || spend $2
}
stop() {
    say "${1:-done}"
    echo '{"type": "turn.completed", "usage": {"input_tokens": '$used', "cached_input_tokens": 0, "output_tokens": 0}}'
}
fail() { printf '{"type": "turn.failed", "error": {"message": "%s"}}\n' "$1"; }
"""

_DIALECTS = {"pi": _PI, "claude": _CLAUDE, "codex": _CODEX}


def talker(program: Path, script: str, agent: str = "pi", **settings: object) -> str:
    """Write a program that talks as an agent does, and return the spec that runs it."""
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{_SESSION}{_DIALECTS[agent]}\n{script}\n")
    program.chmod(0o755)
    more = "".join(f",{name.replace('_', '-')}={value}" for name, value in settings.items())
    return f"{agent}:model,bin={program}{more}"
