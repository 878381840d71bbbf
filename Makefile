# culprit: where have all the cycles gone.
#
#   make            build/culprit
#   make demo       install what is missing, build, profile something real, explain it
#   make check      install what is missing, build, run every test (also under ASan and UBSan)
#   make bench      the figures of bench/RESULTS.md
#   make tables     the tables of the paper on flow and context sensitive profiles
#   make fuzz       fuzz every parser for FUZZ_SECONDS each
#   make torture    edit stock programs and random ones, run them, compare
#   make browser    the page of 'culprit serve' in a real Chromium
#   make layers     check who includes whom
#   make install    PREFIX=/usr/local DESTDIR=
#   make deb        a Debian package, under build/deb
#   make deb-check  install it into a clean root, use it there, upgrade it, remove it
#   make SAN=1 ...  the same with ASan and UBSan, under build/san

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

VERSION := 0.1
PREFIX  ?= /usr/local
DESTDIR ?=
UNITDIR ?= $(PREFIX)/lib/systemd/system
CC      := gcc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
FUZZ_SECONDS ?= 30
CPUS    := $(shell nproc)

BUILD := build$(if $(SAN),/san)
ROOMS := base isa image flow store values upcall objects calls collect import analyze edit paths context burst \
	export web

CFLAGS   ?= -O$(if $(SAN),1,2) -g
# Sanitizers make gcc warn of values that are never used unset (see its manual).
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	    -Wno-maybe-uninitialized
SANFLAGS := $(if $(SAN),$(SANITIZE))
WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wshadow -Wvla $(if $(CI),-Werror)
ALL_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DCULPRIT_VERSION='"$(VERSION)"' -Isrc -I$(BUILD)/gen \
	      $(WARNINGS) $(CFLAGS) $(SANFLAGS)
LIBS := -ldw -lelf -lbpf -lsqlite3 -lzstd -lz -lZydis -lcap -lmicrohttpd -lstdc++ -lm

LIB_SRC  := $(foreach r,$(filter-out upcall objects,$(ROOMS)),$(filter-out %.bpf.c, \
	$(wildcard src/$(r)/*.c)))
CMD_SRC  := $(wildcard src/cmd/*.c)
BPF_SRC  := $(wildcard src/*/*.bpf.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
CMD_OBJ  := $(CMD_SRC:%.c=$(BUILD)/%.o)
SKELETONS := $(patsubst src/%.bpf.c,$(BUILD)/gen/%.skel.h,$(BPF_SRC))
UNIT_SRC := $(wildcard tests/*/test_*.c)
UNIT     := $(UNIT_SRC:%.c=$(BUILD)/%)
# Tests of sampling want the machine for themselves; the others run one on each CPU.
UNIT_ALONE := $(filter $(addprefix $(BUILD)/tests/,collect/% upcall/% values/%),$(UNIT))
E2E        := $(wildcard tests/e2e/*.bats)
E2E_TOGETHER := $(filter $(patsubst %,tests/e2e/%.bats,bursts bursts_% streams calls cfg cli db diff doctor edit \
	edit_% export export_compilers export_viewers list paths per_thread record_% serve stats top),$(E2E))
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ     := $(FUZZ_SRC:tests/fuzz/%.c=build/fuzz/%)
FUZZ_OBJ := $(LIB_SRC:%.c=build/fuzz/%.o)
REPLAY   := $(FUZZ_SRC:%.c=$(BUILD)/%)
# Benchmarks that are made with the library.
INSIDERS := tempos sequitur stream_overlaps cut_bursts synthetic_week hotlists bursts follow pairs exact_counts score misses gone blamed edges_beside context_sums combined_sums unwind path_misses ambiguity lookup
HELPERS_SRC := $(filter-out $(INSIDERS:%=bench/%.c),$(wildcard \
	tests/e2e/programs/*.c tests/e2e/programs/*.cc bench/*.c))
HELPERS  := $(addprefix build/,$(basename $(HELPERS_SRC)))

# What the editor places into programs, as one array of bytes, and where in it things are.
RT_BLOB := $(BUILD)/gen/rt/blob.h $(BUILD)/gen/rt/frames.h $(BUILD)/gen/rt/routines.h
RT_SRC  := src/rt/start.S src/rt/routines.S $(wildcard src/rt/*.c)

# What is loaded into profiled programs, and plug-ins: never with sanitizers.
UPCALL_SRC := $(wildcard src/upcall/*.c) src/isa/interp.c src/values/step.c src/values/capture.c \
	src/values/plugin.c src/base/err.c
UPCALL_OBJ := $(UPCALL_SRC:%.c=build/pic/%.o)
# The same: what writes down allocations of programs whose bursts are recorded.
OBJECTS_OBJ := $(patsubst %.c,build/objects/%.o,$(wildcard src/objects/*.c))
PLUGINS    := $(patsubst plugins/%.c,build/plugins/%.so,$(wildcard plugins/*.c))

.PHONY: all
all: $(BUILD)/culprit build/culprit-upcall.so build/culprit-objects.so $(PLUGINS)

# ---- building ----

$(BUILD)/culprit: $(CMD_OBJ) $(BUILD)/libculprit.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libculprit.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/%.o: %.c | $(SKELETONS) $(RT_BLOB) build/.packages
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Objects first see the generated skeletons; their dependency files know the details afterwards.
.SECONDARY: $(SKELETONS)
$(BUILD)/gen/%.skel.h: $(BUILD)/gen/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

BPF_CLANG = $(CLANG) -target bpf -D__TARGET_ARCH_x86 -O2 -g -mcpu=v3 -Wall -Wextra -Isrc \
	    -idirafter /usr/include/x86_64-linux-gnu -MMD -MP -c -o $@ $<

$(BUILD)/gen/%.bpf.o: src/%.bpf.c | build/.packages
	@mkdir -p $(@D)
	$(BPF_CLANG)

# Freestanding, without vector registers: it runs before anything else and changes nothing.
$(BUILD)/gen/rt/blob.elf: $(RT_SRC) $(wildcard src/rt/*.h) src/rt/blob.ld | build/.packages
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -Isrc $(WARNINGS) -O2 -ffreestanding -fno-builtin -fPIE -fvisibility=hidden \
		-mgeneral-regs-only -fcf-protection=branch -fno-stack-protector -fno-jump-tables \
		-fasynchronous-unwind-tables -fno-tree-loop-distribute-patterns -fno-merge-constants \
		-nostdlib -static -Wl,--build-id=none -Wl,-T,src/rt/blob.ld -o $@ $(RT_SRC)

$(BUILD)/gen/rt/blob.h $(BUILD)/gen/rt/frames.h: $(BUILD)/gen/rt/%.h: $(BUILD)/gen/rt/blob.elf tools/embed
	objcopy -O binary -j .$* $< $(@:.h=.bin)
	tools/embed $(@:.h=.bin) > $@

$(BUILD)/gen/rt/routines.h: $(BUILD)/gen/rt/blob.elf tools/routines
	tools/routines $< > $@

# The page of `culprit serve`, inside the program.
$(BUILD)/gen/web/page.h: $(wildcard src/web/page/*) tools/assets tools/embed
	@mkdir -p $(@D)
	tools/assets $(sort $(wildcard src/web/page/*)) > $@
$(BUILD)/src/web/assets.o build/fuzz/src/web/assets.o: $(BUILD)/gen/web/page.h

# What it does not use goes: its thread-local memory would come out of every thread's stack.
build/culprit-upcall.so: $(UPCALL_OBJ)
	$(CC) -shared $(LDFLAGS) -Wl,-z,now -Wl,-z,defs -Wl,--gc-sections -o $@ $^

# It unwinds by itself: programs need not have the library that does.
build/culprit-objects.so: $(OBJECTS_OBJ)
	$(CC) -shared $(LDFLAGS) -static-libgcc -Wl,-z,now -Wl,--exclude-libs,ALL -o $@ $^ -lgcc_eh -ldl

build/objects/%.o: %.c src/objects/log.h src/rt/objects.h | build/.packages
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -Isrc $(WARNINGS) -O2 -g -fPIC -fvisibility=hidden \
		-fno-omit-frame-pointer -fno-builtin-malloc -fno-optimize-sibling-calls -c -o $@ $<

build/pic/%.o: %.c | build/.packages
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -Isrc $(WARNINGS) $(CFLAGS) -fPIC -fvisibility=hidden \
		-ffunction-sections -fdata-sections -MMD -MP -c -o $@ $<

# With the public header only, as anybody's plug-in.
build/plugins/%.so: plugins/%.c src/values/plugin.h | build/.packages
	@mkdir -p $(@D) build/include/culprit
	@cp src/values/plugin.h build/include/culprit/plugin.h
	$(CC) -std=gnu17 -Ibuild/include $(WARNINGS) $(CFLAGS) $(LDFLAGS) -fPIC -fvisibility=hidden -shared \
		-Wl,-z,now -Wl,-z,defs -o $@ $< -lm

# ---- tests ----

$(BUILD)/tests/%: tests/%.c $(BUILD)/libculprit.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -o $@ $< $(BUILD)/libculprit.a $(LIBS) -lcmocka $(ORACLE)

$(BUILD)/tests/isa/test_interp_unicorn: ORACLE := -lunicorn

# A fuzz target with a main of ours: the library need not be built for libFuzzer to replay a corpus.
$(BUILD)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/replay.c $(BUILD)/libculprit.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -o $@ $^ $(LIBS)

# The interpreter as it is in the kernel, on cases that a test makes.
$(BUILD)/gen/tests/%.bpf.o: tests/%.bpf.c | build/.packages
	@mkdir -p $(@D)
	$(BPF_CLANG) -Itests

$(BUILD)/tests/collect/test_shadow_vectors: $(BUILD)/gen/tests/collect/shadow_vectors.skel.h

$(filter $(BUILD)/tests/upcall/%,$(UNIT)): | $(PLUGINS)

# Reports are tested on databases of known contents, verbs without main.
$(BUILD)/libtests.a: $(BUILD)/tests/fixtures/fixture.o $(BUILD)/tests/fixtures/counted.o $(filter-out %/main.o,$(CMD_OBJ))
	@rm -f $@
	ar rcs $@ $^

define WITH_FIXTURES
$$(BUILD)/tests/$(1)/%: tests/$(1)/%.c $$(BUILD)/libtests.a $$(BUILD)/libculprit.a
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) -Itests -MMD -MP -o $$@ $$< $$(BUILD)/libtests.a \
		$$(BUILD)/libculprit.a $$(LIBS) -lcmocka
endef
$(foreach r,analyze cmd fixtures,$(eval $(call WITH_FIXTURES,$(r))))
e2e: $(BUILD)/tests/fixtures/makedb $(BUILD)/tests/fixtures/anchor_rate $(BUILD)/tests/fixtures/follow_walks
e2e: build/bench/exact_counts build/bench/score $(BUILD)/tests/torture/clobber
e2e: $(BUILD)/tests/torture/shapes

build/fuzz/%.o: %.c | $(SKELETONS) $(RT_BLOB:$(BUILD)/%=build/%) build/.packages
	@mkdir -p $(@D)
	$(CLANG) -std=gnu17 -D_GNU_SOURCE -DCULPRIT_VERSION='"$(VERSION)"' -Isrc -Itests -Ibuild/gen -O1 -g \
		-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
		-MMD -MP -c -o $@ $<

build/fuzz/libculprit.a: $(FUZZ_OBJ)
	@rm -f $@
	ar rcs $@ $^

build/fuzz/fuzz_%: build/fuzz/tests/fuzz/fuzz_%.o build/fuzz/libculprit.a
	$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

.PRECIOUS: build/pic/%.o build/fuzz/%.o $(BUILD)/%.o $(BUILD)/gen/%.bpf.o $(BUILD)/gen/tests/%.bpf.o

$(HELPERS): | build/.packages
build/tests/e2e/programs/%: tests/e2e/programs/%.c tests/e2e/programs/burn.h
	@mkdir -p $(@D)
	$(CC) -O2 -g -std=gnu17 -D_GNU_SOURCE -pthread -o $@ $< -ldl -lm

build/tests/e2e/programs/%: tests/e2e/programs/%.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -std=gnu++17 -o $@ $<

# A week of profiles is made through the store; hot lists are measured without the program.
build/bench/hotlists: bench/streams.h
build/bench/exact_counts build/bench/misses build/bench/path_misses: bench/callgrind.h
build/bench/score: bench/accuracy.h
build/bench/context_sums build/bench/combined_sums: bench/sums.h
$(INSIDERS:%=build/bench/%): build/bench/%: bench/%.c build/libculprit.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

build/bench/work: BENCH_LIBS := -lsqlite3 -lzstd
build/bench/%: bench/%.c bench/phases.h
	@mkdir -p $(@D)
	$(CC) -O2 -g -std=gnu17 -D_GNU_SOURCE -pthread -o $@ $< $(BENCH_LIBS) -lm

.PHONY: unit programs e2e fuzz fuzz-replay layers helpers
programs: $(UNIT)

unit: $(UNIT)
	@tools/together $(filter-out $(UNIT_ALONE),$(UNIT))
	@set -e; for t in $(UNIT_ALONE); do echo "== $$t"; $$t; done

helpers: $(HELPERS)

# What sanitizers have no part in is tagged: programs that run edited, or under the upcall library.
BATS := bats --print-output-on-failure$(if $(SAN), --filter-tags !plain)

e2e: all $(BUILD)/tests/upcall/runner helpers
	CULPRIT=$(abspath $(BUILD)/culprit) tools/together $(E2E_TOGETHER:%='$(BATS) %')
	CULPRIT=$(abspath $(BUILD)/culprit) $(BATS) $(filter-out $(E2E_TOGETHER),$(E2E))

fuzz: $(FUZZ)
	@set -e; for f in $(FUZZ); do n=$$(basename $$f); mkdir -p build/corpus/$$n tests/fuzz/corpus/$$n; \
		echo "== $$n"; $$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
		-artifact_prefix=build/corpus/ build/corpus/$$n tests/fuzz/corpus/$$n; done

fuzz-replay: $(REPLAY)
	@for f in $(REPLAY); do n=$${f##*/}; \
		$$f tests/fuzz/corpus/$$n >$$f.log 2>&1 || \
			{ cat $$f.log; echo "$$n: the corpus fails"; exit 1; }; \
		echo "== $$n: corpus of $$(ls tests/fuzz/corpus/$$n | wc -l) passed"; done

# Takes long: every kind of edit on all of it.
.PHONY: torture
torture: all helpers build/tests/torture/clobber build/tests/torture/variables
	tests/torture/run -k null
	CULPRIT=$(CURDIR)/build/tests/torture/clobber tests/torture/run -k clobber
	tests/torture/run -k exact
	tests/torture/run -s -k exact
	tests/torture/run -m -k exact
	tests/torture/run -k paths
	tests/torture/run -k refined
	tests/torture/run -k context
	tests/torture/run -k paths-context
	CULPRIT=$(CURDIR)/build/tests/torture/variables tests/torture/run -k v0v1 gzip bzip2 perl lua \
		sqlite cc1 gnugo bash sed gawk grep dot groff gs libstdc++
	$(MAKE) build/tests/torture/shapes
	CULPRIT=$(CURDIR)/build/tests/torture/shapes tests/torture/run -k both
	CULPRIT=$(CURDIR)/build/tests/torture/shapes tests/torture/run -k wrap
	tests/torture/run -k disambiguate
	tests/torture/random
	CULPRIT=$(CURDIR)/build/tests/torture/clobber tests/torture/random -k clobber

# The page in a real Chromium; not part of check, as it installs one.
.PHONY: browser
browser: all build/tests/fixtures/makedb
	tests/browser/run

layers:
	@tools/layers $(ROOMS) cmd

.PHONY: check
check: layers
	$(MAKE) -j$(CPUS) CI=1 all programs helpers
	$(MAKE) CI=1 unit
	$(MAKE) -j$(CPUS) CI=1 SAN=1 all programs
	$(MAKE) CI=1 SAN=1 unit
	$(MAKE) -j$(CPUS) CI=1 SAN=1 fuzz-replay
	$(MAKE) CI=1 e2e
	$(MAKE) CI=1 SAN=1 e2e
	@echo "check: all passed"

.PHONY: demo bench tables
demo: all helpers
	@tools/demo $(BUILD)/culprit build/bench/inputs

tables: all build/bench/path_misses
	@bench/tables.sh

bench: all helpers $(INSIDERS:%=build/bench/%)
	@bench/run

# ---- what has to be on the machine ----

# apt runs only when a package is missing, with sudo when not root.
PACKAGES := build-essential pkg-config clang llvm libclang-rt-dev libzydis-dev libelf-dev libdw-dev \
	libbpf-dev bpftool libsqlite3-dev libzstd-dev zlib1g-dev libcap-dev libmicrohttpd-dev libcmocka-dev libunicorn-dev bats jq \
	sqlite3 graphviz gdb valgrind curl protobuf-compiler linux-perf
build/.packages: Makefile tools/packages
	@mkdir -p build
	@tools/packages $(PACKAGES)
	@touch $@

# ---- installing ----

.PHONY: install clean format
install: all
	install -D -m 755 $(BUILD)/culprit $(DESTDIR)$(PREFIX)/bin/culprit
	install -D -m 755 build/culprit-upcall.so $(DESTDIR)$(PREFIX)/lib/culprit/culprit-upcall.so
	install -D -m 755 build/culprit-objects.so $(DESTDIR)$(PREFIX)/lib/culprit/culprit-objects.so
	for p in $(PLUGINS); do install -D -m 755 $$p \
		$(DESTDIR)$(PREFIX)/lib/culprit/plugins/$${p##*/}; done
	install -D -m 644 src/values/plugin.h $(DESTDIR)$(PREFIX)/include/culprit/plugin.h
	for m in doc/*.[1-8]; do install -D -m 644 $$m \
		$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/}; done
	install -D -m 644 doc/culprit.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/culprit
	install -D -m 644 doc/culprit.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_culprit
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@PREFIX@|$(PREFIX)|' doc/culprit.service.in > $(DESTDIR)$(UNITDIR)/culprit.service

.PHONY: deb deb-check
deb:
	@tools/packages $(PACKAGES) debhelper lintian
	@tools/deb $(VERSION)

deb-check: deb
	@tools/packages debootstrap
	@tests/package/run $(VERSION)

format:
	clang-format -i $(wildcard src/*/*.[ch] tests/*/*.[ch] bench/*.c tests/e2e/programs/*.c)

clean:
	rm -rf build

# Not those of programs that tests and measures unpack there.
-include $(shell find build \( -path build/torture -o -path build/bench/sources \) -prune -o -name '*.d' -print \
	2>/dev/null)
