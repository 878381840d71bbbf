/*
 * The verbs: X(name, what it answers in one line, usage). The man page is culprit-NAME(1). The
 * default databases stand here because the usage names them.
 */
#ifndef CULPRIT_CMD_VERBS_H
#define CULPRIT_CMD_VERBS_H

#define CULPRIT_LOCAL_DB  "culprit.db"
#define CULPRIT_SYSTEM_DB "/var/lib/culprit/culprit.db"

#define FILTER_USAGE                                                                              \
	"  -i, --input FILE    the database (default: culprit.db here, else the daemon's)\n"      \
	"  -e, --event NAMES   only these events, comma-separated, in this order\n"               \
	"      --time FROM,TO  only samples of this time (\"-10m,\", \"13:00,13:05\", seconds)\n" \
	"      --epoch IDS     only these epochs (\"3\", \"2-4\", \"last\")\n"                    \
	"      --comm GLOB     only processes of this name\n"                                     \
	"      --image GLOB    only images with this path, base name or build-id\n"               \
	"      --proc GLOB     only procedures of this name\n"                                    \
	"  -p, --pid PID       only this process\n"

#define REPORT_USAGE                                                \
	FILTER_USAGE                                                \
	"      --json          for scripts; keys in the man page\n" \
	"      --no-pager      do not page on a terminal\n"

#define CMD_VERBS(X)                                                                               \
	X(record, "sample a command, processes or the whole machine into a database",              \
		"usage: culprit record [options] [--] COMMAND [ARGS...]\n"                         \
		"       culprit record [options] -a | -p PIDS | -t TIDS | -G CGROUP [[--] "        \
		"COMMAND]\n"                                                                       \
		"  -a, --all-cpus      the whole machine\n"                                        \
		"  -p, --pid PIDS      these processes (comma-separated), threads and children "   \
		"too\n"                                                                            \
		"  -t, --tid TIDS      these threads\n"                                            \
		"  -G, --cgroup NAME   this cgroup\n"                                              \
		"  -C, --cpu CPUS      only on these CPUs (\"0,2-3\")\n"                           \
		"  -e, --event EVENTS  what to sample on (default: cycles, or cpu-clock without "  \
		"PMU)\n"                                                                           \
		"  -F, --freq HZ       samples a second on each CPU\n"                             \
		"  -c, --count PERIOD  events between two samples\n"                               \
		"      --budget SHARE  share of each CPU that sampling may cost (default 1%)\n"    \
		"      --calibrate     measure the cost of a sample anew\n"                        \
		"  -D, --delay MS      wait before sampling begins\n"                              \
		"      --exact         do not sample: count every block and edge (export -f "      \
		"counts)\n"                                                                        \
		"      --paths         do not sample: count paths inside procedures (paths)\n"     \
		"      --full          with --paths: whole ones, also where there are many, "      \
		"slower\n"                                                                         \
		"      --refine DB     with these: by what an earlier run counted, faster\n"       \
		"      --metric NAME   what paths or contexts take: tsc, or an event\n"            \
		"      --context       do not sample: count calls by calling context (calls)\n"    \
		"      --bursts[=N:M]  do not sample: trace what is touched in memory, for M "     \
		"checks\n"                                                                         \
		"                      after every N (default 100000:500), or for a share of\n"    \
		"                      the time (2%); all; never (streams)\n"                      \
		"      --payload WHAT  with --bursts: refs (default), calls, refs+calls, paths,\n" \
		"                      values[=LIST]\n"                                            \
		"      --boring K      with --bursts: not in loops with K references (default "    \
		"4)\n"                                                                             \
		"      --all-checks    with --bursts: at all entries and in all loops\n"           \
		"      --checks WHERE  with --bursts: entries: all, no-leaves, cycles, none\n"     \
		"      --libs PATTERN  with these: only these libraries, by name or path "         \
		"(repeatable)\n"                                                                   \
		"      --atomic        with these: exact for threads and forks too, slower\n"      \
		"      --counted FILE  what a copy that 'edit --exact' made has counted\n"         \
		"  -o, --output FILE   the database (default culprit.db)\n"                        \
		"  -g                  call paths too, from the height of the stack\n"             \
		"      --no-inherit    do not follow children\n"                                   \
		"      --values        keep the values that instructions see (culprit values)\n"   \
		"      --values=upcall the same from inside the command, with load latencies\n"    \
		"      --plugin NAME   latency, conflicts, floats, or a file (with --values)\n"    \
		"      --only NAME     values of this procedure or image only (repeatable)\n"      \
		"      --edges SHARE   of each CPU, to follow branches (default 0.2%)\n"           \
		"      --no-edges      do not keep which way branches go\n"                        \
		"      --excursions[=SHARE]  hold threads for a share of their time (default "     \
		"1%),\n"                                                                           \
		"                      to see what they do for long: better counts (why)\n"        \
		"      --per-process   with -a and -G too, keep profiles by process\n"             \
		"      --bpf, --no-bpf count in the kernel or fail; read perf's rings\n"           \
		"  -q, --quiet         no accounting at the end\n")                                \
	X(daemon, "the same, always on: start, stop, status, flush, epoch",                        \
		"usage: culprit daemon start [options] [LABEL]\n"                                  \
		"       culprit daemon stop|flush [-o FILE]\n"                                     \
		"       culprit daemon status [-o FILE] [--json]\n"                                \
		"       culprit daemon epoch [-o FILE] [LABEL]\n"                                  \
		"  -f, --foreground    do not detach\n"                                            \
		"  -o, --db FILE       the database (default " CULPRIT_SYSTEM_DB ")\n"             \
		"      --drain S       seconds between drains of the sampler (5)\n"                \
		"      --flush S       seconds between writes to the database (60)\n"              \
		"      --keep-days N   forget what is older (30; 0 keeps all)\n"                   \
		"      --keep-size N   bound of the database (1G; 0: none)\n"                      \
		"  -e -F -c -C -G --budget --calibrate --per-process --values --only "             \
		"--edges --no-edges --excursions --bpf --no-bpf: as in record\n")                  \
	X(top, "where the time went: samples by procedure, image, process, line, ...",             \
		"usage: culprit top [options]\n"                                                   \
		"      --by WHAT       procedure (default), image, process, thread, comm, line,\n" \
		"                      cgroup, cpu or time\n"                                      \
		"      --slices N      with --by time: in N slices\n"                              \
		"      --of WHAT       with --by time: image (default) or procedure\n"             \
		"      --live          on a terminal, again and again; ? shows the keys. Without " \
		"-i, of\n"                                                                         \
		"                      the daemon's samples, or of its own where none runs\n"      \
		"      --children      with what they called, from call paths (record -g)\n"       \
		"  -n, --rows N        at most N rows\n"                                           \
		"      --min-share S   rows with at least this share (\"0.5%\" or \"0.005\")\n"    \
		"      --sort EVENT    put this event first and sort by it\n" REPORT_USAGE)        \
	X(list, "one procedure: source and assembly with samples",                                 \
		"usage: culprit list [options] PROCEDURE\n"                                        \
		"  PROCEDURE           a name, a glob, IMAGE!0xSTART, or 0xADDRESS with --image\n" \
		"      --syntax att|intel  of the assembly (default att)\n"                        \
		"      --no-source     assembly alone\n" REPORT_USAGE)                             \
	X(why, "how often instructions run, how long they take, and who is to blame",              \
		"usage: culprit why [options] [PROCEDURE]\n"                                       \
		"  PROCEDURE           as in list; without: all that is selected, and the worst\n" \
		"                      instructions\n"                                             \
		"      --all           also blocks that never ran and the smallest stalls\n"       \
		"  -n, --rows N        without PROCEDURE: at most N instructions (20)\n"           \
		"      --syntax att|intel  of the assembly (default att)\n"                        \
		"      --no-source     assembly alone\n" REPORT_USAGE)                             \
	X(cfg, "a procedure's control-flow graph as a picture, with time and counts",              \
		"usage: culprit cfg [options] -o FILE PROCEDURE\n"                                 \
		"  PROCEDURE           as in list\n"                                               \
		"  -o, --output FILE   X.svg, X.png or X.pdf (by Graphviz), or X.dot\n"            \
		"      --full          all instructions of each block, uncut\n"                    \
		"      --all           also blocks that never ran\n"                               \
		"      --syntax att|intel  of the assembly (default att)\n" FILTER_USAGE)          \
	X(values, "what values instructions see, and what could be made of it",                    \
		"usage: culprit values [options] [PROCEDURE | ADDRESS]\n"                          \
		"  PROCEDURE           a name, a glob or a part of it, IMAGE!0xSTART; all of it\n" \
		"  ADDRESS             0xADDRESS or IMAGE!0xADDRESS: one instruction\n"            \
		"  -n, --rows N        at most N rows\n"                                           \
		"      --targets       where indirect calls, jumps and returns go\n"               \
		"      --strides       how far addresses move from one time to the next\n"         \
		"      --latency       how long loads take\n"                                      \
		"      --by-call-site  arguments by the place of the call\n"                       \
		"      --kind KIND     result, source, address, stride, latency, conflict, "       \
		"float,\n"                                                                         \
		"                      length, entry, target or plugin\n"                          \
		"      --plugin FILE   the plug-in that prints its values\n"                       \
		"      --syntax att|intel  of the assembly (default att)\n" REPORT_USAGE)          \
	X(calls, "calling contexts: who was called from where, as a tree or a flame graph",        \
		"usage: culprit calls [options]\n"                                                 \
		"      --top-down      from the roots to the callees (default)\n"                  \
		"      --bottom-up     from procedures to their callers\n"                         \
		"      --hot           contexts with the most of the metric themselves\n"          \
		"      --size          how large the tree is\n"                                    \
		"      --folded        for flame graph programs: names, and a number\n"            \
		"      --svg           a flame graph\n"                                            \
		"      --tree          with --json: all contexts, once, for programs\n"            \
		"  -o, --output FILE   where --folded and --svg go to\n"                           \
		"      --sites         call sites apart\n"                                         \
		"      --metric NAME   one that was measured, or calls\n"                          \
		"      --min-share S   what is shown: this share of the metric (default 1%)\n"     \
		"  -n, --rows N        at most N rows\n" REPORT_USAGE)                             \
	X(paths, "hot paths inside procedures, and what was measured on them",                     \
		"usage: culprit paths [options] [PROCEDURE]\n"                                     \
		"  PROCEDURE           all paths of it: a name, a glob, IMAGE!0xSTART\n"           \
		"      --min-share S   what is hot: this share of the metric (default 1%)\n"       \
		"      --metric NAME   one that was measured, executions or instructions\n"        \
		"      --procedures    procedures by the number of paths that ran\n"               \
		"      --compare       with what edge counts alone would foretell\n"               \
		"  -n, --rows N        at most N rows\n" REPORT_USAGE)                             \
	X(bursts, "short traces of what a program touched in memory",                              \
		"usage: culprit bursts [options] [BURST]\n"                                        \
		"       culprit bursts --set N:M PID|FILE\n"                                       \
		"  BURST               its number: one as a trace\n"                               \
		"      --set RATES     have a program that runs take bursts at other rates\n"      \
		"  -n, --rows N        at most N rows (default 20)\n" REPORT_USAGE)                \
	X(streams, "sequences of data accesses that come again and again",                         \
		"usage: culprit streams [options]\n"                                               \
		"      --length A,B    from A to B references (default 10,100)\n"                  \
		"      --coverage S    share of all references that shall be hot (default 90%)\n"  \
		"      --heat S        and that each stream must have (default 0.1%)\n"            \
		"      --compare FILE  how much of it another database has, too\n"                 \
		"      --by context    also in which calling contexts (--payload refs+calls)\n"    \
		"      --offline       what repeats, by Re-Pair instead of Sequitur\n"             \
		"      --raw           instructions and addresses, no advice\n"                    \
		"  -n, --rows N        at most N streams (default 10)\n" REPORT_USAGE)             \
	X(stats, "how much procedures vary over many runs",                                        \
		"usage: culprit stats [options] DATABASE...\n"                                     \
		"  DATABASE            FILE or FILE:EPOCHS; one alone: each epoch is a set\n"      \
		"      --by-epoch      each epoch of each database is a set\n"                     \
		"      --normalise     as if all sets had the same number of samples\n"            \
		"  -n, --rows N        at most N rows\n"                                           \
		"      --min-share S   rows with at least this share (default "                    \
		"0.5%)\n" REPORT_USAGE)                                                            \
	X(diff, "what changed between runs, and how sure that is",                                 \
		"usage: culprit diff [options] BEFORE AFTER\n"                                     \
		"       culprit diff [options] --before DATABASE... --after DATABASE...\n"         \
		"  BEFORE, AFTER       FILE or FILE:EPOCHS, several with commas between;\n"        \
		"                      each epoch is a run\n"                                      \
		"      --by WHAT       time (default) or share\n"                                  \
		"      --fail-over P   exit 1 if the total, or a procedure, got slower by more\n"  \
		"                      than P per cent, significantly\n"                           \
		"  -n, --rows N        at most N rows\n"                                           \
		"      --min-share S   rows with at least this share (--fail-over: "               \
		"1%)\n" REPORT_USAGE)                                                              \
	X(export, "how often code ran, for other programs",                                        \
		"usage: culprit export -f FORMAT [options]\n"                                      \
		"  -f, --format FORMAT counts: how often blocks and edges ran, estimated\n"        \
		"                      bolt, llvm-sample: the same, for llvm-bolt and clang\n"     \
		"                      edges: edge samples, as they were seen\n"                   \
		"                      folded: calling contexts, for flame graphs\n"               \
		"                      pprof, speedscope, firefox: for these viewers\n"            \
		"                      csv: the same as a table\n"                                 \
		"      --flat          with these: instructions and lines, no callers\n"           \
		"  -o, --output FILE   where to (default: standard output)\n" FILTER_USAGE)        \
	X(serve, "all of it in a browser",                                                         \
		"usage: culprit serve [options] [DATABASE...]\n"                                   \
		"  -P, --port PORT     where to listen (default: any that is free)\n"              \
		"      --listen ADDR   another address than 127.0.0.1; needs --token-file\n"       \
		"      --token-file F  the token is the first line of this file\n"                 \
		"      --host NAME     a name that browsers call this machine (repeatable)\n"      \
		"  -i, --input FILE    a database (default: culprit.db here, else the "            \
		"daemon's)\n")                                                                     \
	X(edit, "a copy of a program or library with code added, that runs as before",             \
		"usage: culprit edit [options] -o EDITED PROGRAM\n"                                \
		"       culprit edit --report [--json] [options] PROGRAM\n"                        \
		"  -o, --output EDITED the edited copy\n"                                          \
		"      --null          add nothing: all functions are moved only (default)\n"      \
		"      --exact         count every block and edge, into EDITED.counts\n"           \
		"      --context       count by calling context, into EDITED.counts\n"             \
		"      --paths         count paths inside functions, into EDITED.counts\n"         \
		"      --bursts[=N:M]  trace what it touches, in bursts, into EDITED.counts\n"     \
		"      --full, --refine DB, --metric NAME  see culprit-record(1)\n"                \
		"      --atomic        with these: for threads and forks too, slower\n"            \
		"      --disambiguate  make heights of the stack tell call paths apart (record "   \
		"-g)\n"                                                                            \
		"      --map DB        with it: the call paths that are known\n"                   \
		"      --search HOW    with it: greedy (default) or random\n"                      \
		"      --strict        fill what moved away with traps, to find whoever goes "     \
		"there\n"                                                                          \
		"      --report        how much can be edited, and why the rest cannot\n"          \
		"      --only FUNCTION edit this one alone: a name, a glob or 0xADDRESS; may be "  \
		"repeated\n"                                                                       \
		"      --skip FUNCTION leave it alone; may be repeated\n"                          \
		"      --json          the report for programs\n")                                 \
	X(db, "look after databases: ls, check, merge, import, expire",                            \
		"usage: culprit db ls [--json] [FILE]\n"                                           \
		"       culprit db check [FILE...]\n"                                              \
		"       culprit db merge -o OUT IN...\n"                                           \
		"       culprit db import [-o OUT] [-l LABEL] PERF.DATA\n"                         \
		"       culprit db expire [--age DAYS | --before DATE] [--size BYTES] [FILE]\n")   \
	X(doctor, "what this machine allows, and how to get the rest",                             \
		"usage: culprit doctor [--json]\n"                                                 \
		"       culprit doctor --events   the events this machine has\n")

#endif
