/*
 * The verbs: X(name, what it answers in one line, usage). The man page is culprit-NAME(1).
 */
#ifndef CULPRIT_CMD_VERBS_H
#define CULPRIT_CMD_VERBS_H

#define REPORT_USAGE                                                                              \
	"  -i, --input FILE    the database (default: culprit.db here, else the daemon's)\n"      \
	"  -e, --event NAMES   only these events, comma-separated, in this order\n"               \
	"      --time FROM,TO  only samples of this time (\"-10m,\", \"13:00,13:05\", seconds)\n" \
	"      --epoch IDS     only these epochs (\"3\", \"2-4\", \"last\")\n"                    \
	"      --comm GLOB     only processes of this name\n"                                     \
	"      --image GLOB    only images with this path, base name or build-id\n"               \
	"      --proc GLOB     only procedures of this name\n"                                    \
	"  -p, --pid PID       only this process\n"                                               \
	"      --json          for scripts; keys in the man page\n"                               \
	"      --no-pager      do not page on a terminal\n"

#define CMD_VERBS(X)                                                                               \
	X(record, "sample a command, processes or the whole machine into a database",              \
		"usage: culprit record [options] [-- COMMAND [ARGS...]]\n"                         \
		"  -a                  the whole machine\n"                                        \
		"  -p PIDS, -t TIDS    these processes, these threads (comma-separated)\n"         \
		"  -G CGROUP           this cgroup\n"                                              \
		"  -C CPUS             only on these CPUs (\"0,2-3\")\n"                           \
		"  -e EVENTS           what to sample on (default cycles; cpu-clock no PMU)\n"     \
		"  -F HZ               samples a second on each CPU\n"                             \
		"  -c PERIOD           events between samples\n"                                   \
		"      --budget SHARE  share of each CPU that sampling may cost (default 1%)\n"    \
		"  -D MS               wait before sampling begins\n"                              \
		"  -o FILE             the database (default culprit.db)\n"                        \
		"      --no-inherit    do not follow children\n"                                   \
		"      --per-process   keep profiles by process too, for top --pid\n")             \
	X(daemon, "the same, always on: start, stop, status, flush, epoch",                        \
		"usage: culprit daemon start [--foreground] [options]\n"                           \
		"       culprit daemon stop|flush|epoch\n"                                         \
		"       culprit daemon status [--json]\n")                                         \
	X(top, "where the time went: samples by procedure, image, process, line, ...",             \
		"usage: culprit top [options]\n"                                                   \
		"      --by WHAT       procedure (default), image, process, thread, comm, line,\n" \
		"                      cgroup or cpu\n"                                            \
		"  -n, --rows N        at most N rows\n"                                           \
		"      --min-share S   rows with at least this share (\"0.5%\" or \"0.005\")\n"    \
		"      --sort EVENT    put this event first and sort by it\n" REPORT_USAGE)        \
	X(list, "one procedure: source and assembly with samples",                                 \
		"usage: culprit list [options] PROCEDURE\n"                                        \
		"  PROCEDURE           a name, a glob, IMAGE!0xSTART, or 0xADDRESS with --image\n" \
		"      --syntax att|intel  of the assembly (default att)\n"                        \
		"      --no-source     assembly alone\n" REPORT_USAGE)                             \
	X(db, "look after databases: ls, check, merge, expire",                                    \
		"usage: culprit db ls [--json] [-i FILE | FILE]\n"                                 \
		"       culprit db check [FILE]\n"                                                 \
		"       culprit db merge -o OUT IN...\n"                                           \
		"       culprit db expire [-i FILE] [--age DAYS|--before DATE] [--size N]\n")      \
	X(doctor, "what this machine allows, and how to get the rest",                             \
		"usage: culprit doctor [--json]\n")

#endif
