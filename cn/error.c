/* SPDX-License-Identifier: Apache-2.0 */
#include "cn/store.h"

#include <errno.h>

const char *farkv_strerror(int error)
{
	switch (error) {
	case FARKV_OK:
		return "success";
	case FARKV_ENOTFOUND:
		return "not found";
	case FARKV_EEXISTS:
		return "exists already";
	case FARKV_EINVAL:
		return "invalid argument";
	case FARKV_ENOSPC:
		return "no space: the region or the key's bucket is full";
	case FARKV_ETIMEDOUT:
		return "timed out, without effect";
	case FARKV_EUNKNOWN:
		return "outcome unknown: it may or may not have happened";
	case FARKV_EUNAVAILABLE:
		return "memory node unavailable";
	case FARKV_EMEMCACHED:
		return "memcached unreachable or silent";
	case FARKV_ENOCLUSTER:
		return "memcached knows no such cluster";
	case FARKV_EREFUSED:
		return "refused by a memory node";
	case FARKV_ENODEVICE:
		return "no such RDMA device, port or GID index";
	case FARKV_ENOMEM:
		return "out of local memory, or over the memlock limit";
	case FARKV_EAGAIN:
		return "too many operations in flight: poll first";
	case FARKV_ETOOSMALL:
		return "the value is longer than the buffer";
	case FARKV_EVERSION:
		return "another layout or record version";
	case FARKV_ECORRUPT:
		return "remote memory holds what farkv never writes";
	case FARKV_EFORK:
		return "made before fork, in the parent";
	case FARKV_EBUSY:
		return "sessions are still open";
	default:
		return "unknown error";
	}
}

#define STRING(x)	 #x
#define VERSION(a, b, c) STRING(a) "." STRING(b) "." STRING(c)

const char *farkv_version(void)
{
	return VERSION(FARKV_VERSION_MAJOR, FARKV_VERSION_MINOR, FARKV_VERSION_PATCH);
}

int error_of_errno(int error)
{
	switch (-error) {
	case 0:
		return FARKV_OK;
	case ETIMEDOUT:
	case ECONNREFUSED:
	case EPROTO:
		return FARKV_EMEMCACHED;
	case ENOENT:
		return FARKV_ENOCLUSTER;
	case ENODEV:
	case EOPNOTSUPP:
		return FARKV_ENODEVICE;
	case ENOMEM:
		return FARKV_ENOMEM;
	case EPROTONOSUPPORT:
		return FARKV_EVERSION;
	case EBADMSG:
	case ENODATA:
		return FARKV_ECORRUPT;
	case EPERM:
	case ENOKEY:
		return FARKV_EREFUSED;
	default:
		return FARKV_EINVAL;
	}
}
