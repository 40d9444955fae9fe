/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/property.h"

#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\f";

/* Whether the line goes on; takes the line end and the continuing backslash off. */
static bool line_trim(char *line, size_t *length)
{
	size_t backslashes = 0;

	while (*length > 0 && (line[*length - 1] == '\n' || line[*length - 1] == '\r'))
		(*length)--;
	while (backslashes < *length && line[*length - 1 - backslashes] == '\\')
		backslashes++;
	*length -= backslashes % 2;
	line[*length] = '\0';
	return backslashes % 2 == 1;
}

static char *unicode_read(char *from, char *to)
{
	unsigned int code = 0;
	int digits = 0;

	for (; digits < 4 && strchr("0123456789abcdefABCDEF", *from) && *from != '\0'; digits++) {
		code = code * 16 +
		       (unsigned int)(*from <= '9' ? *from - '0' : (*from | 32) - 'a' + 10);
		from++;
	}
	*to = (char)(code < 256 ? code : '?');
	return from;
}

/* Takes one name or value off the line, in place; ends at a character of `ends`. */
static char *token_read(char *line, const char *ends)
{
	char *to = line;
	const char *escape;

	while (*line != '\0' && !strchr(ends, *line)) {
		if (*line != '\\' || line[1] == '\0') {
			*to++ = *line++;
			continue;
		}
		line++;
		if (*line == 'u') {
			line = unicode_read(line + 1, to++);
			continue;
		}
		escape = strchr("t\tn\nr\rf\f", *line);
		*to++ = escape && *line >= 'a' ? escape[1] : *line;
		line++;
	}
	if (*line != '\0')
		line++;
	*to = '\0';
	return line;
}

/* The separator that ended the name may be a blank before = or :. */
static bool property_split(char *line, bench_property_fn found, void *arg)
{
	char *name, *value, *at;
	size_t name_bytes;
	bool separated;

	name = line + strspn(line, blanks);
	if (*name == '\0' || *name == '#' || *name == '!')
		return true;
	for (at = name; *at != '\0' && !strchr("=: \t\f", *at); at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
	}
	name_bytes = (size_t)(at - name);
	value = at + strspn(at, blanks);
	separated = *value == '=' || *value == ':';
	if (separated)
		value = value + 1 + strspn(value + 1, blanks);
	name[name_bytes] = '\0';
	token_read(name, "");
	/* value > at unless the line ended with the name. */
	token_read(value, "");
	for (at = value + strlen(value); at > value && strchr(blanks, at[-1]);)
		*--at = '\0';
	return found(name, value, arg);
}

bool bench_property_read(FILE *file, bench_property_fn found, void *arg)
{
	char *line = NULL, *whole = NULL, *grown;
	size_t room = 0, whole_bytes = 0, start, length;
	bool good = true, more = false;
	ssize_t got;

	while (good && (got = getline(&line, &room, file)) >= 0) {
		length = (size_t)got;
		start = more ? strspn(line, blanks) : 0;
		if (!more && strchr("#!", line[strspn(line, blanks)]) && line[strspn(line, blanks)])
			continue;
		more = line_trim(line, &length);
		if (length < start)
			start = length;
		grown = realloc(whole, whole_bytes + length - start + 1);
		if (!grown) {
			good = false;
			break;
		}
		whole = grown;
		memcpy(whole + whole_bytes, line + start, length - start + 1);
		whole_bytes += length - start;
		if (!more) {
			good = property_split(whole, found, arg);
			whole_bytes = 0;
		}
	}
	if (good && whole_bytes > 0)
		good = property_split(whole, found, arg);
	good = good && !ferror(file);
	free(whole);
	free(line);
	return good;
}
