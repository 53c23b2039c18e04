#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copies queryprof into PREFIX: sh install.sh [PREFIX] (default /usr/local). Nothing else is changed.
set -eu
prefix=${1:-/usr/local}
cd "$(dirname "$0")"
mkdir -p "$prefix"
cp -R -P bin lib include share "$prefix"/
echo "queryprof is in $prefix/bin. To remove it: (cd $prefix && xargs rm -f) < $prefix/share/queryprof/files"
