#!/bin/bash
# Fetches what doc/tutorial-streams.md works on and builds it: as it is (*.before) and with the patches
# that lie beside this script (*.after). Needs deb-src lines in apt's sources and the packages
# build-essential, cmake and libbz2-dev.
#
#	prepare-streams.sh FOLDER
set -e
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { echo "usage: prepare-streams.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
apt-get -q source --download-only bsdiff
apt-get -q source --download-only libdivsufsort
apt-get -q download dict-gcide dict-wn

for name in bsdiff libdivsufsort; do
	for kind in before after; do
		mkdir "$name.$kind"
		tar xf "$name"_*.orig.tar.* -C "$name.$kind" --strip-components=1
	done
	patch -d "$name.after" -p1 <"$here/$name-prefetch.patch"
done
for kind in before after; do
	gcc -O2 -g -o bsdiff.$kind/bsdiff bsdiff.$kind/bsdiff.c -lbz2
	cmake -S libdivsufsort.$kind -B libdivsufsort.$kind/build -DCMAKE_BUILD_TYPE=None \
		-DCMAKE_C_FLAGS="-O2 -g" -DBUILD_SHARED_LIBS=OFF
	make -s -C libdivsufsort.$kind/build mksary
	ln -s build/examples/mksary libdivsufsort.$kind/mksary
done >build.log 2>&1

# Two dictionaries as texts; for bsdiff a part of each as the old one, of which the middle is replaced.
for name in gcide wn; do
	dpkg-deb -x dict-${name}_*.deb words
	zcat words/usr/share/dictd/$name.dict.dz >whole.txt
	head -c 20000000 whole.txt >$name.txt
	head -c 3000000 whole.txt >$name.old
done
{ head -c 1000000 gcide.old; head -c 500000 wn.old; tail -c 1500000 gcide.old; } >gcide.new
{ head -c 1200000 wn.old; head -c 400000 gcide.old; tail -c 1400000 wn.old; } >wn.new
rm whole.txt
