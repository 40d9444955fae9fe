/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table per enumeration, indexed by code. A row's order in the table is its code; the row
 * of an unknown code stands last. `causes` are ordered by how often they are met.
 *
 * What a peer sees and what a device says are two things: a remote side that finds a bad key answers with a NAK
 * and goes to ERR itself, a remote side that is in ERR, gone, or never got to RTR does not answer at all. So
 * RETRY_EXC_ERR is the usual face of any death.
 */
#include "fabric/status.h"

#include <inttypes.h>
#include <stddef.h>

#define ROW(code_, meaning_, causes_, check_, farkv_, action_)                                     \
	[code_] = { .code = (code_), .name = #code_, .meaning = meaning_, .causes = causes_,       \
		    .check = check_, .farkv = farkv_, .action = action_ }

#define REBUILDS                                                                                   \
	"ends what was in flight with an honest error; the store must be opened again"
#define FAILS                                                                                      \
	"fails the operation with this name in the log; the store must be opened again"
#define NOT_USED "fails the operation: farkv uses nothing that could give this"

static const struct status_row wc_rows[] = {
	ROW(IBV_WC_SUCCESS, "the work request is done",
	    "none",
	    "nothing; but a READ that gives only zeros is an IOMMU not in passthrough mode",
	    "completes the operation", STATUS_NOTHING),
	ROW(IBV_WC_LOC_LEN_ERR, "a local length does not fit",
	    "a scatter/gather entry longer than its registered region or than the port's largest message; a message "
	    "larger than the receive buffer posted for it",
	    "lengths of the buffers against their registration; receive buffers against the longest message",
	    FAILS, STATUS_FAIL),
	ROW(IBV_WC_LOC_QP_OP_ERR, "the local queue pair cannot do this operation",
	    "an opcode the transport does not have; more entries or inline bytes than granted; a bad or inconsistent "
	    "work request",
	    "the work request's opcode, flags and entry count against what the queue pair was created with",
	    FAILS, STATUS_FAIL),
	ROW(IBV_WC_LOC_EEC_OP_ERR, "the local end-to-end context cannot do this operation",
	    "reliable datagrams only, which no current device has",
	    "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_LOC_PROT_ERR, "local memory protection",
	    "a wrong or stale lkey; an address outside its region; region and queue pair in different protection domains",
	    "that lkey, address and length belong to one region, still registered, of the queue pair's domain",
	    FAILS, STATUS_FAIL),
	ROW(IBV_WC_WR_FLUSH_ERR, "flushed: the queue pair was in ERR before this work request was executed",
	    "an earlier work request failed; the queue pair was put in ERR on purpose; the device reported a fatal event",
	    "the first completion of the same queue pair that is not a flush, and the asynchronous events",
	    "waits for the first error of the same queue pair and does what that one says", STATUS_FLUSHED),
	ROW(IBV_WC_MW_BIND_ERR, "binding a memory window failed",
	    "a region without the right to bind; a window of another domain",
	    "access flags of the region", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_BAD_RESP_ERR, "the answer from the remote side makes no sense",
	    "opcode or length of the answer unexpected: a firmware fault, or devices that do not understand each other",
	    "firmware versions on both sides; the same with perftest",
	    REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_LOC_ACCESS_ERR, "the local buffer does not allow the access",
	    "the result of a READ or an atomic, or a message, goes to a region without local write access",
	    "access flags of the local region", FAILS, STATUS_FAIL),
	ROW(IBV_WC_REM_INV_REQ_ERR, "the remote side finds the request invalid",
	    "an operation its queue pair does not allow or know; a message longer than its receive buffer; an atomic at an "
	    "address that is no multiple of 8; more READs in flight than it has room for",
	    "access flags of the remote queue pair; alignment; the depths negotiated at connecting",
	    FAILS, STATUS_FAIL),
	ROW(IBV_WC_REM_ACCESS_ERR, "the remote side denies the access",
	    "a wrong or stale rkey (its memory node has restarted); an address outside the region; the region or the queue "
	    "pair without the right to remote read, write or atomic",
	    "the incarnation in the memory node's record; offset and length; access flags on the remote side",
	    "reads the memory node's record again, reconnects, and resolves what was in flight",
	    STATUS_RECONNECT),
	ROW(IBV_WC_REM_OP_ERR, "the remote side could not carry the request out",
	    "an error inside the remote device; a receive there that failed by itself",
	    "log and asynchronous events on the remote side", REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_RETRY_EXC_ERR, "no acknowledgement after all retries",
	    "the remote process or host is gone, or its queue pair is in ERR or not yet in RTR; the network is cut, or "
	    "loses packets (RoCE without flow control); wrong GID, LID, MTU, queue pair number or sequence number",
	    "whether the memory node runs; ping between the GIDs' addresses; port state (ibv_devinfo); GID index and MTU on "
	    "both sides; discards (ethtool -S, hw_counters)",
	    REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_RNR_RETRY_EXC_ERR, "the remote side had no receive posted, for all retries",
	    "more control messages than its receive queue holds, while its process is stopped or overloaded",
	    "whether the memory node's process runs; out_of_buffer in its hw_counters",
	    REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_LOC_RDD_VIOL_ERR, "reliable datagram domains of queue pair and context differ",
	    "reliable datagrams only", "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_REM_INV_RD_REQ_ERR, "the remote side finds a reliable datagram invalid",
	    "reliable datagrams only", "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_REM_ABORT_ERR, "the remote side gave the operation up",
	    "its queue pair was put in ERR or reset, or a multi-packet request was abandoned",
	    "log of the remote side at the same time", REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_INV_EECN_ERR, "no such end-to-end context",
	    "reliable datagrams only", "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_INV_EEC_STATE_ERR, "the end-to-end context is in the wrong state",
	    "reliable datagrams only", "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_FATAL_ERR, "the device has failed",
	    "a hardware or firmware fault, a reset of the device, or its removal",
	    "dmesg; the device's health reporter (devlink health)",
	    "gives up this device: all its operations fail", STATUS_DEVICE_GONE),
	ROW(IBV_WC_RESP_TIMEOUT_ERR, "no answer in time",
	    "the remote side got the request and takes too long, or the network is cut between request and answer",
	    "load of the remote host and its device; ping; discards",
	    REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_GENERAL_ERR, "an error that no other status describes",
	    "whatever the vendor means by vendor_err",
	    "vendor_err in the vendor's documents; dmesg", REBUILDS, STATUS_RECONNECT),
	ROW(IBV_WC_TM_ERR, "a tag matching operation failed",
	    "a tag list operation on a shared receive queue that does not allow it",
	    "driver and firmware versions", NOT_USED, STATUS_FAIL),
	ROW(IBV_WC_TM_RNDV_INCOMPLETE, "a tag matching rendezvous was not finished by the device",
	    "software must finish the transfer",
	    "driver and firmware versions", NOT_USED, STATUS_FAIL),
	{ .code = -1, .name = "unknown status", .meaning = "a status this program does not know",
	  .causes = "a libibverbs newer than this program, or a driver's fault",
	  .check = "vendor_err; versions of libibverbs and the driver", .farkv = REBUILDS,
	  .action = STATUS_RECONNECT },
};

static const struct status_row event_rows[] = {
	ROW(IBV_EVENT_CQ_ERR, "a completion queue is broken",
	    "it overflowed: more completions than it has room for",
	    "the queue's depth against the work in flight; that completions are polled",
	    "fails what is in flight; open the store again, with a larger queue", STATUS_RECONNECT),
	ROW(IBV_EVENT_QP_FATAL, "a queue pair has failed and is in ERR for good",
	    "its completion queue overflowed, or the device met an internal error on it",
	    "earlier events; dmesg", REBUILDS, STATUS_RECONNECT),
	ROW(IBV_EVENT_QP_REQ_ERR, "a queue pair got an invalid request and is in ERR",
	    "the peer sent an opcode or a sequence that the transport forbids, or exceeds the depths negotiated",
	    "the peer's completions with IBV_WC_REM_INV_REQ_ERR", REBUILDS, STATUS_RECONNECT),
	ROW(IBV_EVENT_QP_ACCESS_ERR, "a queue pair was asked for memory it may not give and is in ERR",
	    "the peer used a wrong or stale rkey, an address outside the region, or lacks a right",
	    "the peer's completions with IBV_WC_REM_ACCESS_ERR; whether a stranger knows the address",
	    REBUILDS, STATUS_RECONNECT),
	ROW(IBV_EVENT_COMM_EST, "the first packet came before the queue pair was in RTS",
	    "the peer was faster with connecting", "nothing", "goes on connecting", STATUS_NOTHING),
	ROW(IBV_EVENT_SQ_DRAINED, "a send queue has finished what was posted before it was put in SQD",
	    "the queue pair was put in SQD", "nothing", "takes note: farkv does not use SQD",
	    STATUS_NOTHING),
	ROW(IBV_EVENT_PATH_MIG, "a connection has moved to its alternate path",
	    "the primary path failed, or a migration was asked for", "the primary path's ports and switches",
	    "takes note: farkv loads no alternate paths", STATUS_NOTHING),
	ROW(IBV_EVENT_PATH_MIG_ERR, "a connection could not move to its alternate path",
	    "the alternate path is not usable", "alternate path's ports and switches",
	    "waits for the completions that tell which queue pairs are lost", STATUS_NOTHING),
	ROW(IBV_EVENT_DEVICE_FATAL, "the device has failed",
	    "a hardware or firmware fault, a reset of the device, or its removal",
	    "dmesg; the device's health reporter (devlink health)",
	    "gives up this device: all its operations fail", STATUS_DEVICE_GONE),
	ROW(IBV_EVENT_PORT_ACTIVE, "a port's link has come up",
	    "cable, switch, interface or subnet manager are back", "nothing",
	    "reconnects what was lost", STATUS_NOTHING),
	ROW(IBV_EVENT_PORT_ERR, "a port's link has gone down",
	    "cable or switch; the network interface was set down; no subnet manager",
	    "ibv_devinfo; ip link; the switch's port",
	    "keeps its queue pairs: short breaks pass within the retries, longer ones end in IBV_WC_RETRY_EXC_ERR, and "
	    "reconnecting waits for the port", STATUS_NOTHING),
	ROW(IBV_EVENT_LID_CHANGE, "the subnet manager gave the port another LID",
	    "the subnet manager restarted or renumbered", "the subnet manager's log (sminfo)",
	    "reads the port again and reconnects", STATUS_RECONNECT),
	ROW(IBV_EVENT_PKEY_CHANGE, "the port's table of partition keys has changed",
	    "the subnet manager's partitions were edited", "partition keys of both ports (index 0)",
	    "reconnects: a queue pair keeps the key of its index", STATUS_RECONNECT),
	ROW(IBV_EVENT_SM_CHANGE, "another subnet manager has taken over",
	    "a hand-over, or the former one died", "sminfo", "takes note", STATUS_NOTHING),
	ROW(IBV_EVENT_SRQ_ERR, "a shared receive queue is broken",
	    "an internal error of the device on it", "dmesg",
	    "logs it; control messages are lost until the memory node is restarted", STATUS_RECONNECT),
	ROW(IBV_EVENT_SRQ_LIMIT_REACHED, "a shared receive queue has fallen to its limit",
	    "messages came faster than receives were posted again", "nothing, unless it comes often",
	    "posts receives and arms the limit again: it fires once", STATUS_NOTHING),
	ROW(IBV_EVENT_QP_LAST_WQE_REACHED, "a queue pair in ERR will take no more from its shared receive queue",
	    "the queue pair was put in ERR", "nothing", "may now destroy the queue pair", STATUS_NOTHING),
	ROW(IBV_EVENT_CLIENT_REREGISTER, "the subnet manager asks for subscriptions anew",
	    "the subnet manager restarted", "nothing", "takes note: farkv has none", STATUS_NOTHING),
	ROW(IBV_EVENT_GID_CHANGE, "an entry of the port's GID table has changed",
	    "an IP address was added to or taken from the interface; a bond changed its active link",
	    "ip address; show_gids or /sys/class/infiniband/*/ports/*/gids",
	    "reads its GID again; where it has changed or moved, reconnects and publishes the new one",
	    STATUS_RECONNECT),
	ROW(IBV_EVENT_WQ_FATAL, "a work queue has failed",
	    "an internal error of the device on a receive work queue", "dmesg",
	    "takes note: farkv has no such queues", STATUS_NOTHING),
	{ .code = -1, .name = "unknown event", .meaning = "an event this program does not know",
	  .causes = "a libibverbs newer than this program, or a driver's fault",
	  .check = "versions of libibverbs and the driver; dmesg", .farkv = "logs and acknowledges it",
	  .action = STATUS_NOTHING },
};

enum {
	WC_COUNT = sizeof wc_rows / sizeof wc_rows[0] - 1,
	EVENT_COUNT = sizeof event_rows / sizeof event_rows[0] - 1,
};

_Static_assert(WC_COUNT == IBV_WC_TM_RNDV_INCOMPLETE + 1, "a row per status");
_Static_assert(EVENT_COUNT == IBV_EVENT_WQ_FATAL + 1, "a row per event");

const struct status_row *status_of_wc(enum ibv_wc_status status)
{
	return &wc_rows[(unsigned)status < WC_COUNT ? (unsigned)status : WC_COUNT];
}

const struct status_row *status_of_event(enum ibv_event_type event)
{
	return &event_rows[(unsigned)event < EVENT_COUNT ? (unsigned)event : EVENT_COUNT];
}

size_t status_wc_rows(const struct status_row **rows)
{
	*rows = wc_rows;
	return WC_COUNT;
}

size_t status_event_rows(const struct status_row **rows)
{
	*rows = event_rows;
	return EVENT_COUNT;
}

void status_log_wc(const struct logger *logger, const struct ibv_wc *wc)
{
	const struct status_row *row = status_of_wc(wc->status);
	enum log_level level = row->action == STATUS_NOTHING || row->action == STATUS_FLUSHED ?
			       LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR;

	log_line(logger, level,
		 "%s (%d): wr_id 0x%" PRIx64 " qp 0x%06x vendor_err 0x%x: %s; check: %s; farkv %s", row->name,
		 (int)wc->status, wc->wr_id, wc->qp_num, wc->vendor_err, row->meaning, row->check,
		 row->farkv);
}
