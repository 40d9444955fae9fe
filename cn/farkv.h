/* SPDX-License-Identifier: Apache-2.0 */
/*
 * farkv: a key-value store on disaggregated memory. The client library.
 *
 * A *store* (struct farkv) is one process's membership in a cluster: it finds the memory
 * nodes through memcached, connects to them, and reports epochs from a helper thread. A
 * *session* belongs to one thread at a time, owns one queue pair per memory node, and runs
 * up to `depth` operations at once. Memory-node processors take no part in operations.
 *
 * Threads: see THREAD_SAFETY.md. In short: different sessions may be used by different
 * threads at the same time; one session by one thread at a time; farkv_open, farkv_close
 * and farkv_session_open of one store are serialised by the library.
 *
 * fork: stores and sessions do not survive fork. In the child every call on an inherited
 * object fails with FARKV_EFORK; the parent goes on. fork+exec is fine.
 *
 * Errors: functions return 0 or a negative FARKV_E*; farkv_strerror names them.
 */
#ifndef FARKV_H
#define FARKV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FARKV_API __attribute__((visibility("default")))
#else
#define FARKV_API
#endif

#define FARKV_VERSION_MAJOR 0
#define FARKV_VERSION_MINOR 1
#define FARKV_VERSION_PATCH 0

#define FARKV_KEY_MAX	1024u  /* bytes; a key has 1..1024 bytes, any bytes */
#define FARKV_VALUE_MAX 65536u /* bytes; a value has 0..65536 bytes, any bytes */

enum farkv_error {
	FARKV_OK = 0,
	FARKV_ENOTFOUND = -1,	 /* get, update, delete: no such key */
	FARKV_EEXISTS = -2,	 /* insert: the key is there already */
	FARKV_EINVAL = -3,	 /* an argument is out of its range; the log says which */
	FARKV_ENOSPC = -4,	 /* the region or the key's bucket is full */
	FARKV_ETIMEDOUT = -5,	 /* the deadline passed; the operation has had no effect */
	FARKV_EUNKNOWN = -6,	 /* outcome unknown: the operation may or may not have happened */
	FARKV_EUNAVAILABLE = -7, /* a memory node cannot be reached */
	FARKV_EMEMCACHED = -8,	 /* memcached cannot be reached or did not answer in time */
	FARKV_ENOCLUSTER = -9,	 /* memcached answers, but holds no memory node of this cluster */
	FARKV_EREFUSED = -10,	 /* a memory node refused; the log says why */
	FARKV_ENODEVICE = -11,	 /* no such device, port or GID index; the log says which */
	FARKV_ENOMEM = -12,	 /* local memory or the memlock limit is exhausted */
	FARKV_EAGAIN = -13,	 /* `depth` operations are in flight: poll, then try again */
	FARKV_ETOOSMALL =
		-14, /* get: the value is longer than the buffer; *value_len says by how much */
	FARKV_EVERSION = -15, /* layout or record version differs from this library's */
	FARKV_ECORRUPT = -16, /* remote memory holds what farkv never writes */
	FARKV_EFORK = -17,    /* the object was made before fork, in the parent */
	FARKV_EBUSY = -18,    /* farkv_close: sessions are still open */
};

/* A name for any farkv_error, static, never NULL. Thread-safe. */
FARKV_API const char *farkv_strerror(int error);
/* "0.1.0". Thread-safe. */
FARKV_API const char *farkv_version(void);

enum farkv_log_level {
	FARKV_LOG_ERROR = 0,
	FARKV_LOG_WARNING = 1,
	FARKV_LOG_NOTICE = 2,
	FARKV_LOG_DEBUG = 3,
};

/*
 * Receives one line without a newline; borrowed for the call. May be called from any
 * thread of the library, the helper thread included; must not call back into farkv.
 */
typedef void (*farkv_log_fn)(enum farkv_log_level level, const char *line, void *arg);

/*
 * All fields have defaults: call farkv_options_init first. Precedence: what the program
 * sets after farkv_options_init < nothing; FARKV_* variables are read by
 * farkv_options_init itself, so that a program's own assignments (its command line) win.
 * Strings are borrowed until farkv_open returns.
 */
struct farkv_options {
	size_t struct_bytes;   /* set by farkv_options_init: the size the program was built with */
	const char *cluster;   /* FARKV_CLUSTER, default "default"; at most 180 bytes, no spaces */
	const char *memcached; /* FARKV_MEMCACHED, default "127.0.0.1:11211";
				  HOST:PORT[,HOST:PORT...] */
	const char *device; /* FARKV_DEVICE, default "auto"; a device name, with :PORT if wanted */
	int gid_index;	    /* FARKV_GID_INDEX, default -1 = routable RoCE v2 first */
	uint32_t mtu;	    /* FARKV_MTU, bytes, 0 = the port's active MTU */
	uint32_t service_level; /* FARKV_SERVICE_LEVEL, 0..15 */
	uint32_t traffic_class; /* FARKV_TRAFFIC_CLASS, 0..255 */
	uint32_t qp_timeout; /* FARKV_QP_TIMEOUT, IB exponent 0..31, default 14: 4.096 us << 14 */
	uint32_t qp_retries; /* FARKV_QP_RETRIES, 0..7, default 6: Soft-RoCE takes 7 for "for ever"
			      */
	uint32_t qp_rnr_retries; /* FARKV_QP_RNR_RETRIES, 0..7, default 7 */
	uint32_t max_inline; /* FARKV_MAX_INLINE, bytes wanted, default 220; the device may grant
				less */
	uint32_t
		sq_depth; /* FARKV_SQ_DEPTH, work requests per queue pair, 16..16384, default 256 */
	uint32_t signal_interval; /* FARKV_SIGNAL_INTERVAL, 1..32, default 32; at most sq_depth / 2
				   */
	uint32_t depth; /* FARKV_DEPTH, operations in flight per session, 1..1024, default 64 */
	uint32_t open_timeout_ms; /* FARKV_OPEN_TIMEOUT_MS, default 5000 */
	uint32_t op_timeout_ms;	  /* FARKV_OP_TIMEOUT_MS, default 2000 */
	uint64_t cache_bytes;	  /* FARKV_CACHE_BYTES, address cache, default 64 MiB, 0 = none */
	uint32_t helper_thread; /* FARKV_HELPER_THREAD, default 1; 0 = farkv_poll reports epochs */
	uint32_t log_level;	/* FARKV_LOG_LEVEL, 0..3, default FARKV_LOG_WARNING */
	farkv_log_fn log;	/* NULL = lines to stderr */
	void *log_arg;
	const char *secret_file; /* FARKV_SECRET_FILE: 32 bytes that seal the records; NULL =
				    unsealed */
};

/*
 * Fills in defaults, then FARKV_* from the environment. A variable that does not parse or
 * is out of range: FARKV_EINVAL, the log line on stderr names it, and the default stands.
 */
FARKV_API int farkv_options_init_sized(struct farkv_options *options, size_t struct_bytes);
#define farkv_options_init(options)                                                                \
	farkv_options_init_sized((options), sizeof(struct farkv_options))

struct farkv;
struct farkv_session;

/*
 * Opens the store within options->open_timeout_ms: device, memcached, every memory node.
 * Errors: EINVAL, ENODEVICE, EMEMCACHED, ENOCLUSTER, EREFUSED, EUNAVAILABLE, EVERSION,
 * ECORRUPT, ENOMEM. On success *store is owned by the caller, until farkv_close.
 */
FARKV_API int farkv_open(const struct farkv_options *options, struct farkv **store);

/* Accepts NULL. FARKV_EBUSY while sessions are open, and nothing happens. */
FARKV_API int farkv_close(struct farkv *store);

/* Errors as farkv_open. *session is owned by the caller, until farkv_session_close. */
FARKV_API int farkv_session_open(struct farkv *store, struct farkv_session **session);

/*
 * Completes what is in flight (bounded by the operations' deadlines), posts what is owed,
 * and frees the session. Accepts NULL.
 */
FARKV_API int farkv_session_close(struct farkv_session *session);

/*
 * Synchronous operations. Keys and values are borrowed for the call. Errors of all:
 * EINVAL, ETIMEDOUT, EUNAVAILABLE, EUNKNOWN (mutations only), ECORRUPT, EFORK, and:
 *   get     ENOTFOUND, ETOOSMALL (nothing is copied)
 *   put     ENOSPC, ENOMEM            insert-or-replace
 *   insert  EEXISTS, ENOSPC, ENOMEM   only if absent
 *   update  ENOTFOUND, ENOSPC, ENOMEM only if present
 *   delete  ENOTFOUND
 * *value_len: the value's length in bytes; may be NULL. *version (may be NULL): the name of
 * the instance read or written; no two writings of any key ever share one.
 */
FARKV_API int farkv_get(struct farkv_session *session, const void *key, size_t key_len,
			void *buffer, size_t buffer_bytes, size_t *value_len);
FARKV_API int farkv_put(struct farkv_session *session, const void *key, size_t key_len,
			const void *value, size_t value_len);
FARKV_API int farkv_insert(struct farkv_session *session, const void *key, size_t key_len,
			   const void *value, size_t value_len);
FARKV_API int farkv_update(struct farkv_session *session, const void *key, size_t key_len,
			   const void *value, size_t value_len);
FARKV_API int farkv_delete(struct farkv_session *session, const void *key, size_t key_len);

/* Asynchronous operations. */
enum farkv_op {
	FARKV_GET = 1,
	FARKV_PUT = 2,
	FARKV_INSERT = 3,
	FARKV_UPDATE = 4,
	FARKV_DELETE = 5,
};

struct farkv_result {
	int status; /* 0 or FARKV_E* */
	enum farkv_op op;
	size_t value_len;     /* get: bytes of the value, also with ETOOSMALL */
	uint64_t version;     /* the instance read or written; 0 where none is known */
	uint32_t round_trips; /* post-to-completion waits of the operation's own chains */
	uint32_t cached;      /* 1: the address cache was used and held */
};

/*
 * Called exactly once per submitted operation, from farkv_poll, farkv_flush, farkv_wait or a
 * synchronous call of the same session. May submit; must not poll, wait, flush or close.
 */
typedef void (*farkv_done_fn)(const struct farkv_result *result, void *arg);

struct farkv_request {
	enum farkv_op op;
	const void *key; /* borrowed for the call of farkv_submit only */
	size_t key_len;
	const void *value; /* put, insert, update; borrowed for the call only */
	size_t value_len;
	void *buffer; /* get: where the value goes; borrowed until done is called */
	size_t buffer_bytes;
	uint32_t timeout_ms; /* 0 = options.op_timeout_ms */
	farkv_done_fn done;
	void *arg;
};

/*
 * Stages one operation; it is posted, with others to the same memory node, in one doorbell by
 * the next farkv_poll, farkv_flush or farkv_wait. Operations in flight at once on one key
 * have no order among them. FARKV_EAGAIN: `depth` reached, or, with values above some 1900 bytes, 16 of them in flight (done will not be called). EINVAL, EFORK.
 */
FARKV_API int farkv_submit(struct farkv_session *session, const struct farkv_request *request);

/* Posts what is staged, takes completions, calls done functions. Returns their number, or
 * FARKV_EFORK. Never blocks. */
FARKV_API int farkv_poll(struct farkv_session *session);

/* Polls until nothing submitted is in flight. Bounded by the operations' deadlines. 0 or
 * FARKV_EFORK. */
FARKV_API int farkv_wait(struct farkv_session *session);

/* farkv_wait, then all owed work (slots, free bits, counters) posted and completed. */
FARKV_API int farkv_flush(struct farkv_session *session);

/* Work requests by kind, as posted. */
struct farkv_verbs {
	uint64_t read, write, cas, faa, send;
	uint64_t doorbells;	/* calls of ibv_post_send */
	uint64_t cqes;		/* completions taken */
	uint64_t round_trips;	/* chains that an operation waited for */
	uint64_t inline_writes; /* those of `write` that went inline */
};

struct farkv_session_stats {
	struct farkv_verbs verbs;    /* of the operations themselves */
	struct farkv_verbs deferred; /* owed slots, free bits, counters, epochs, allocation; a
					doorbell or CQE that carries both kinds counts above only */
	uint64_t operations;
	uint64_t cache_hits, cache_stale, cache_misses;
	uint64_t lock_waits;   /* bucket locks found taken */
	uint64_t owed_pending; /* owed work not yet completed */
	uint64_t epoch_waits;  /* operations that waited for memory to pass its epoch */
};

/* Thread safety: the session's own thread. */
FARKV_API void farkv_session_stats(const struct farkv_session *session,
				   struct farkv_session_stats *stats);

struct farkv_mn_stats {
	uint32_t mn_id;
	uint32_t connected; /* 1: the reporting queue pair is up */
	uint64_t incarnation;
	uint64_t region_bytes, units_total, units_used;
	int64_t items; /* as last flushed by all clients */
	uint64_t commits, sessions, epoch, safe_epoch;
	uint64_t index_segments;
	uint32_t max_inline; /* bytes granted */
	uint32_t is_softnic;
	char device[64];
};

/*
 * READs the counters of the memory nodes with this session's queue pairs. *count: in, the room in
 * `stats`; out, the number of memory nodes (may be larger). EUNAVAILABLE, ETIMEDOUT, EFORK.
 */
FARKV_API int farkv_stat(struct farkv_session *session, struct farkv_mn_stats *stats,
			 size_t *count);

#ifdef __cplusplus
}
#endif
#endif
