#!/bin/sh
# A goal run by hand, and nothing more: N worktrees, agents and checks at most SLOTS at once, the first that passes is applied.
# usage, at the top of the repository: bare.sh N SLOTS FOLDER AGENT CHECK
set -eu
count=$1 slots=$2 folder=$3 agent=$4 check=$5
export folder agent check
seq "$count" | xargs -P "$slots" -I{} sh -c '
    export ORCH_CANDIDATE={}
    git worktree add -q --detach "$folder/{}" HEAD
    cd "$folder/{}"
    sh -c "$agent" </dev/null >"$folder/{}.agent" 2>&1
    if sh -c "$check" </dev/null >"$folder/{}.check" 2>&1; then touch "$folder/{}.passed"; fi'
winner=1
until [ -e "$folder/$winner.passed" ]; do winner=$((winner + 1)); done
git -C "$folder/$winner" add -A
git -C "$folder/$winner" diff --cached --binary HEAD | git apply
for number in $(seq "$count"); do git worktree remove --force "$folder/$number"; done
