#!/bin/sh
# Stands in for a hasty model: NULLS FIRST and NULLS LAST become order tokens, DESC NULLS LAST stays split in three.
set -eu
sed -i '/NULLS.*FIRST|LAST/s/tokens\.Keyword)/tokens.Keyword.Order)/' sqlparse/keywords.py
