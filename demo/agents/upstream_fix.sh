#!/bin/sh
# Stands in for a good model: upstream's own fix, the file given as $1 from the next release.
set -eu
cp "$1" sqlparse/keywords.py
