/*
 * The procedures of an image as flows: brings together what flow_create needs from an image (code,
 * constant data, addresses that data holds, landing pads, what does not return).
 *
 * Not for several threads at once.
 */
#ifndef CULPRIT_FLOW_PROGRAM_H
#define CULPRIT_FLOW_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/cfg.h"
#include "image/image.h"

struct image_data;
struct program;

/* The image must outlive it. Without its file, tables stay unresolved; that is no error. */
void program_create(struct image *im, struct program **out);
void program_destroy(struct program *p);

struct image *program_image(const struct program *p);

/* -ENOENT when the code cannot be read. */
int program_flow(
	struct program *p, const struct procedure *procedure, struct flow **out, struct err *e);

/* Addresses that others go to, by what the caller knows beside: flows made from now on show it. */
void program_note_entered(struct program *p, const uint64_t *addresses, size_t n);

/* All addresses of data that the code refers to: tables end where something else begins. */
void program_note_data(struct program *p, const uint64_t *addresses, size_t n);

/* What the image's data says; NULL when there is none. */
const struct image_data *program_data(const struct program *p);

/* The code of all ranges of a procedure, one after the other; good until the next is asked for. */
int program_code(
	struct program *p, const struct procedure *procedure, const uint8_t **out, struct err *e);

/* Whether a call to an address may come back: by name, and by what was noted. */
bool program_returns(struct program *p, uint64_t address);
void program_note_noreturn(struct program *p, uint64_t entry);

#endif
