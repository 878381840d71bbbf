#!/bin/bash
# Fetches what doc/tutorial-values.md works on and builds it as Debian 12 does: as it is (*.before), and
# with the patches that lie beside this script. Needs deb-src lines in apt's sources and the packages
# build-essential, dpkg-dev and netpbm.
#
#	prepare.sh FOLDER
set -e
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { echo "usage: prepare.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
for flags in CFLAGS CPPFLAGS LDFLAGS; do
	export $flags="$(dpkg-buildflags --get $flags)"
done

# Of ccrypt only the upstream archive is used: mirrors may lack the Debian part.
apt-get -q source --download-only ccrypt || [ -e ccrypt_1.11.orig.tar.gz ]
apt-get -q source --download-only netpbm-free
apt-get -q download mate-backgrounds

apply() { # FOLDER PATCH...
	local folder=$1 name
	shift
	for name; do
		patch -d "$folder" -p1 <"$here/$name.patch"
	done
}

build_ccrypt() { # FOLDER PATCH...
	mkdir "$1"
	tar xf ccrypt_1.11.orig.tar.gz -C "$1" --strip-components=1
	apply "$@"
	(cd "$1" && ./configure -q && make -s) >"$1.log" 2>&1
}

build_pnmremap() { # FOLDER PATCH...; as debian/rules does
	dpkg-source -q -x netpbm-free_*.dsc "$1"
	apply "$@"
	(
		cd "$1"
		cat config.mk.in debian/config.mk.debian >config.mk
		printf 'CFLAGS = %s\nWANT_SSE = Y\n' "$CFLAGS" >>config.mk
		make -C lib && make -C editor pnmremap
	) >"$1.log" 2>&1
}

build_ccrypt ccrypt.before
build_ccrypt ccrypt.after ccrypt
build_pnmremap netpbm.before
build_pnmremap netpbm.division pnmremap-division
build_pnmremap netpbm.after pnmremap-division pnmremap-planes

xz -dc netpbm-free_*.orig.tar.xz >sources.tar
ccrypt.before/src/ccrypt -e -K word <sources.tar >sources.cpt
dpkg-deb -x mate-backgrounds_*.deb pictures
for picture in Garden Storm; do
	jpegtopnm -quiet pictures/usr/share/backgrounds/mate/nature/$picture.jpg |
		pamscale -quiet -xsize 800 >$picture.ppm
	pnmcolormap -quiet 256 $picture.ppm >$picture.map
done
