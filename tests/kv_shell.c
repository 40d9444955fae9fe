/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client for the process tests: one session, one command a line, one answer a line.
 *
 *   kv_shell CLUSTER MEMCACHED DEVICE
 *
 *   put|insert|update KEY VALUE   get|del KEY     %XX in keys and values is a byte
 *   fill KEY LENGTH               put LENGTH bytes of a pattern that LENGTH determines
 *   check KEY LENGTH              get; ok only if these bytes are there
 *
 * Answers: "open" first; then "ok", "ok VALUE" or the error's text.
 */
#include "cn/farkv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	unsigned char at[FARKV_VALUE_MAX];
	size_t length;
};

static struct bytes key, value, answer;

static void unescape(const char *text, struct bytes *bytes)
{
	unsigned byte;

	bytes->length = 0;
	while (text && *text && bytes->length < sizeof bytes->at) {
		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1) {
			bytes->at[bytes->length++] = (unsigned char)byte;
			text += 3;
		} else {
			bytes->at[bytes->length++] = (unsigned char)*text++;
		}
	}
}

static void fill(struct bytes *bytes, size_t length)
{
	bytes->length = length;
	for (size_t i = 0; i < length; i++)
		bytes->at[i] = (unsigned char)(length * 31 + i * 7 + (i >> 8));
}

static void say(int status)
{
	printf("%s\n", status ? farkv_strerror(status) : "ok");
}

static void get(struct farkv_session *session)
{
	int status = farkv_get(session, key.at, key.length, answer.at, sizeof answer.at, &answer.length);

	if (status) {
		say(status);
		return;
	}
	printf("ok");
	for (size_t i = 0; i < answer.length; i++)
		printf(answer.at[i] > 32 && answer.at[i] < 127 && answer.at[i] != '%' ? "%s%c" : "%s%%%02x",
		       i ? "" : " ", answer.at[i]);
	printf("\n");
}

static void check(struct farkv_session *session)
{
	int status = farkv_get(session, key.at, key.length, answer.at, sizeof answer.at, &answer.length);

	if (status)
		say(status);
	else if (answer.length != value.length)
		printf("length %zu\n", answer.length);
	else
		printf("%s\n", memcmp(answer.at, value.at, value.length) ? "wrong bytes" : "ok");
}

static void command(struct farkv_session *session, char *line)
{
	char *word = strtok(line, " ");
	char *name = strtok(NULL, " ");
	char *rest = strtok(NULL, " ");

	unescape(name, &key);
	unescape(rest, &value);
	if (!word)
		printf("no command\n");
	else if (!strcmp(word, "get"))
		get(session);
	else if (!strcmp(word, "put"))
		say(farkv_put(session, key.at, key.length, value.at, value.length));
	else if (!strcmp(word, "insert"))
		say(farkv_insert(session, key.at, key.length, value.at, value.length));
	else if (!strcmp(word, "update"))
		say(farkv_update(session, key.at, key.length, value.at, value.length));
	else if (!strcmp(word, "del"))
		say(farkv_delete(session, key.at, key.length));
	else if (!strcmp(word, "fill") || !strcmp(word, "check")) {
		size_t length = strtoul(rest ? rest : "0", NULL, 10);

		fill(&value, length <= FARKV_VALUE_MAX ? length : FARKV_VALUE_MAX);
		if (*word == 'c')
			check(session);
		else
			say(farkv_put(session, key.at, key.length, value.at, value.length));
	} else {
		printf("no such command\n");
	}
}

int main(int argc, char **argv)
{
	static char line[4 * FARKV_VALUE_MAX];
	struct farkv_options options;
	struct farkv *store = NULL;
	struct farkv_session *session = NULL;
	int status;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	farkv_options_init(&options);
	options.cluster = argv[1];
	options.memcached = argv[2];
	options.device = argv[3];
	status = farkv_open(&options, &store);
	if (!status)
		status = farkv_session_open(store, &session);
	printf("%s\n", status ? farkv_strerror(status) : "open");
	while (!status && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		command(session, line);
	}
	farkv_session_close(session);
	farkv_close(store);
	return status ? 3 : 0;
}
