#include "image/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/io.h"
#include "base/mem.h"
#include "image/elf_file.h"
#include "image/image.h"

#define DEBUG_ROOT "/usr/lib/debug"

enum {
	CRC_CHUNK = 1 << 16,
	LINK_MAX_SIZE = 4096,
};

/* The CRC-32 of .gnu_debuglink (that of zlib), bit by bit: such files are rare. */
static int file_crc(int fd, uint64_t size, uint32_t *out)
{
	_cleanup_free_ uint8_t *chunk = xmalloc(CRC_CHUNK);
	uint32_t crc = UINT32_MAX;
	for (uint64_t at = 0; at < size; at += CRC_CHUNK) {
		size_t n = size - at < CRC_CHUNK ? size - at : CRC_CHUNK;
		int r = io_pread_full(fd, chunk, n, at);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			crc ^= chunk[i];
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		}
	}
	*out = ~crc;
	return 0;
}

static bool is_that_file(int fd, const struct image_id *id, const uint32_t *crc)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (id->size && !id->is_hash) {
		struct image_id other;
		return image_identify(fd, &other, NULL) == 0 && image_id_equal(id, &other);
	}
	uint32_t found;
	return crc && (uint64_t)st.st_size <= ELF_SECTION_MAX &&
	       file_crc(fd, (uint64_t)st.st_size, &found) == 0 && found == *crc;
}

/* Takes the path. */
static int try_path(char *path, const struct image_id *id, const uint32_t *crc)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	free(path);
	if (fd >= 0 && is_that_file(fd, id, crc))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

static int find_by_id(const struct image_id *id)
{
	char text[IMAGE_ID_TEXT];
	if (id->is_hash || id->size < 2)
		return -ENOENT;
	image_id_text(id, text);
	return try_path(xasprintf(DEBUG_ROOT "/.build-id/%.2s/%s.debug", text, text + 2), id, NULL);
}

static int find_by_link(const char *path, const struct image_id *id, const struct elf_file *f)
{
	const Elf64_Shdr *s = elf_file_section(f, ".gnu_debuglink");
	_cleanup_(bytes_deinit) struct bytes link = {0};
	if (!s || s->sh_size > LINK_MAX_SIZE || elf_file_read_section(f, s, &link) < 0)
		return -ENOENT;
	struct cursor c = cursor_over(link.p, link.n);
	const char *name = cursor_str(&c);
	cursor_skip(&c, -cursor_offset(&c) & 3);
	uint32_t crc = cursor_u32(&c);
	if (c.failed || !*name || strchr(name, '/') || *path != '/')
		return -ENOENT;

	int dir = (int)(strrchr(path, '/') - path);
	int fd = try_path(xasprintf("%.*s/%s", dir, path, name), id, &crc);
	if (fd < 0)
		fd = try_path(xasprintf("%.*s/.debug/%s", dir, path, name), id, &crc);
	if (fd < 0)
		fd = try_path(xasprintf(DEBUG_ROOT "%.*s/%s", dir, path, name), id, &crc);
	return fd;
}

int debug_file_find(const char *path, const struct image_id *id, const struct elf_file *f)
{
	int fd = find_by_id(id);
	return fd >= 0 ? fd : find_by_link(path, id, f);
}
