#!/bin/sh
# Creates Temporal's two Postgres databases, or brings their schemas up to date. Every step may be run again.
set -eu

sql() {
    db=$1
    shift
    temporal-sql-tool --plugin "$DB" --ep "$POSTGRES_SEEDS" -p "$DB_PORT" -u "$POSTGRES_USER" --db "$db" "$@"
}

for store in temporal:temporal temporal_visibility:visibility; do
    db=${store%%:*}
    sql "$db" create
    sql "$db" setup-schema -v 0.0
    sql "$db" update-schema -d "/etc/temporal/schema/postgresql/v12/${store##*:}/versioned"
done
