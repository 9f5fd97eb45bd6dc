#!/bin/sh
# Stands in for a model that gives up: cheap, quick and of no use.
sleep 1
