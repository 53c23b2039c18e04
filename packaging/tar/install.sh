#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sh install.sh [PREFIX]: copies queryprof into PREFIX (default /usr/local), and changes nothing else.
set -eu
prefix=${1:-/usr/local}
cd "$(dirname "$0")"
mkdir -p "$prefix"
cp -R -P bin lib include share "$prefix"/
echo "queryprof is in $prefix/bin. To remove it: (cd $prefix && xargs rm -f) < $prefix/share/queryprof/files"
