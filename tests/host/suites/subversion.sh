#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Creates a Subversion repository in this folder and queries it. Prints a line with the hash of each
# answer. No answer contains a time. $1: number of commits, by default 200.
set -e
commits=${1:-200}
answer() { # NAME COMMAND...
	name=$1
	shift
	"$@" >answer 2>&1 || echo "exit status $?" >>answer
	echo "ok $name $(sha256sum <answer)"
}
without_times() { "$@" | grep -v '<date>'; }

svnadmin create repository
svn checkout -q "file://$PWD/repository" copy
for i in 0 1 2 3 4 5 6; do
	echo "file $i" >"copy/$i"
	svn add -q "copy/$i"
done
commit=0
while [ $commit -lt "$commits" ]; do
	echo "commit $commit" >>copy/$((commit % 7))
	svn commit -q --username tester -m "commit $commit" copy
	commit=$((commit + 1))
done
svn update -q copy
answer log without_times svn log --xml copy
answer blame without_times svn blame --xml copy/3
answer diff svn diff -r $((commits / 4)):$((commits * 3 / 4)) copy
answer verify svnadmin verify -q repository
answer back svn update -q -r $((commits / 2)) copy
answer status svn status copy
answer content cat copy/0 copy/1 copy/2 copy/3 copy/4 copy/5 copy/6
answer cleanup svn cleanup copy
