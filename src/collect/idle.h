/*
 * How long CPUs slept. A sleeping CPU of a virtual machine may get none of the clock's interrupts,
 * whoever samples; such samples were never to be had and are not called missed.
 */
#ifndef CULPRIT_COLLECT_IDLE_H
#define CULPRIT_COLLECT_IDLE_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds since boot that these CPUs (none given: all) were idle or waiting for a disk. */
double idle_seconds(const int *cpus, size_t n);

/* The same from the text of /proc/stat. */
double idle_parse(const char *text, long ticks_per_second, const int *cpus, size_t n);

#endif
