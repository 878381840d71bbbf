/*
 * Giving up rights that are not needed any more.
 */
#ifndef CULPRIT_COLLECT_PRIVILEGE_H
#define CULPRIT_COLLECT_PRIVILEGE_H

struct err;

/*
 * After the events are open and the BPF program is loaded, sampling needs no right at all; what is
 * left serves attribution: reading the maps, roots and files of other users' processes
 * (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH; CAP_CHECKPOINT_RESTORE for deleted files) and kernel
 * symbols (CAP_SYSLOG). Everything else goes for good, also over exec. Without effect for an
 * ordinary user.
 */
int privilege_drop(struct err *e);

#endif
