#!/bin/sh
# Creates the namespace that orch uses, with its retention and search attributes. May be run again.
# The temporal command reads TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE.
set -eu

retry() { # a server that has just started, or a namespace that was just made, is usable only after a moment
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        if "$@"; then return; fi
        sleep 2
    done
    return 1
}

retry temporal operator cluster health
if temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
    temporal operator namespace update -n "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
else
    temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
fi
retry temporal operator search-attribute list >/dev/null
have=$(temporal operator search-attribute list)
for name in OrchKind OrchRepo OrchStatus; do
    case $have in
        *"$name"*) ;;
        *) retry temporal operator search-attribute create --name "$name" --type Keyword ;;
    esac
done
