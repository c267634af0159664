/* Shared by the fuzz targets of trust: a root and two sites with fixed keys, so that ids are the same in each run. */
#ifndef TRUST_FUZZ_H
#define TRUST_FUZZ_H

#include "trust/seal_int.h"

#define FUZZ_NOW_MS INT64_C(1794733200000)
#define FUZZ_DAY_MS INT64_C(86400000)

enum { FUZZ_ROOT, FUZZ_A, FUZZ_B, FUZZ_HOLDERS };

static const char *const fuzz_pems[FUZZ_HOLDERS] = {
	"-----BEGIN PRIVATE KEY-----\n"
	"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/OpqqTFHkwXDOTcX\n"
	"w66fCl/dBHH74jgepZ1wVOykxDyhRANCAAQZxddyJAdmT53nTcvGxAlRoDjMDi8/\n"
	"1WMjMIVxfORMTlyvymVLdx/QmseB/izJhKNXqPieOpao7wmyGmd6BcSH\n"
	"-----END PRIVATE KEY-----\n",
	"-----BEGIN PRIVATE KEY-----\n"
	"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEFvVDwh0GAZyoQ7E\n"
	"K1kef7nhXRkurPI+C93NOuErBwqhRANCAAQMZktyun743Y/lAQlZBGBT7E2XPjow\n"
	"XCpRawcDceoSxaKbg3YaKHJGzo+KxC4dpUdoQuODRepluMusk4BPl1oM\n"
	"-----END PRIVATE KEY-----\n",
	"-----BEGIN PRIVATE KEY-----\n"
	"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBTyhadVA9xoNiCZQ\n"
	"MsJFbjeZl0f2+moS4qKa3zPvraWhRANCAARDQd6nbxfRRqr8S/MlG0cO02DLJ2Hg\n"
	"mZtj4UdEyTF7AZhz9oykF/TIpPyDIhgyIIBrtV2H5gIvejyw3mb+khm4\n"
	"-----END PRIVATE KEY-----\n",
};

struct fuzz_holder {
	struct trust_key *key;
	struct buf der;
};

static void fuzz_holder_make(struct fuzz_holder *holder, const char *pem, const char *name,
                             const struct fuzz_holder *root)
{
	struct buf request = {0};
	CHECK(trust_key_read(&holder->key, str_of(pem), NULL) == 0);
	if (!root) {
		CHECK(trust_root_make(holder->key, str_of(name), FUZZ_NOW_MS, 999 * FUZZ_DAY_MS, &holder->der, NULL) == 0);
		return;
	}
	CHECK(trust_request_make(holder->key, str_of(name), &request, NULL) == 0);
	CHECK(trust_request_sign(buf_str(&request), root->key, buf_str(&root->der), FUZZ_NOW_MS, FUZZ_DAY_MS, &holder->der,
	                         NULL) == 0);
	buf_free(&request);
}

/* Made once, and kept. */
static const struct fuzz_holder *fuzz_holders(void)
{
	static struct fuzz_holder holders[FUZZ_HOLDERS];
	if (!holders[FUZZ_ROOT].key) {
		fuzz_holder_make(&holders[FUZZ_ROOT], fuzz_pems[FUZZ_ROOT], "root", NULL);
		fuzz_holder_make(&holders[FUZZ_A], fuzz_pems[FUZZ_A], "Alma", &holders[FUZZ_ROOT]);
		fuzz_holder_make(&holders[FUZZ_B], fuzz_pems[FUZZ_B], "Bern", &holders[FUZZ_ROOT]);
	}
	return holders;
}

#endif
