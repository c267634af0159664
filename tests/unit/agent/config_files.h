/* Files that configurations of the tests name. The certificate is signed by itself, and nobody trusts it. */
#ifndef TESTS_UNIT_AGENT_CONFIG_FILES_H
#define TESTS_UNIT_AGENT_CONFIG_FILES_H

#include "base/buf.h"
#include "base/err.h"

static const char certificate_pem[] = "-----BEGIN CERTIFICATE-----\n"
									  "MIIBdTCCARugAwIBAgIUDpYnULCSKBPiSHKgunEY7slo+g8wCgYIKoZIzj0EAwIw\n"
									  "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTUxMjM4MThaGA8yMTI2MTAyMjEyMzgx\n"
									  "OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOFG\n"
									  "tMMMOi/pFmC4ncQdvC7ukMvn1aK/PDjB0cBXNRhnElfkAQQccqqhb/IeT2D6Gdck\n"
									  "SLWf3yurSsXfGAI+1bKjUzBRMB0GA1UdDgQWBBRNRyDd2B8xsW9CSVEtdz8SBPrO\n"
									  "ozAfBgNVHSMEGDAWgBRNRyDd2B8xsW9CSVEtdz8SBPrOozAPBgNVHRMBAf8EBTAD\n"
									  "AQH/MAoGCCqGSM49BAMCA0gAMEUCIFiVh781E9n7Z45DkSBbmEQuheRJxDmpJIxd\n"
									  "ZPKeiZ7+AiEAnjy/ITNuhy3XHqHN497Ad5Pn0wrQU0Mc4kEDmHf93R4=\n"
									  "-----END CERTIFICATE-----\n";

static const char key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
							  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgeXNS5pbyI2EF07Dq\n"
							  "qda1oX45kjach3RWkdulziFWqs+hRANCAAThRrTDDDov6RZguJ3EHbwu7pDL59Wi\n"
							  "vzw4wdHAVzUYZxJX5AEEHHKqoW/yHk9g+hnXJEi1n98rq0rF3xgCPtWy\n"
							  "-----END PRIVATE KEY-----\n";

static const char other_key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
									"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrCk5hgDat5hXdTHw\n"
									"OTq6PBZYhsb+SLSomopb78R7dTuhRANCAASdMo9RPcFNNOtH9xppghCJjLGroOkw\n"
									"2tBcUqbj8yuFDA5pVi6IkREU7pIynB4MrLesLylDSHCzpweQ1LHNu12U\n"
									"-----END PRIVATE KEY-----\n";

static const char locked_key_pem[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
									 "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAil/L/XVKAmaQICCAAw\n"
									 "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEM1TIZ6/PGboEojLDoMbVwkEgZB4\n"
									 "iJfzea1cDxnie3mCRHVNGiSjkg4cfib3qTAAC85ztKn05fbzr4ZwPc9Gtkmx4Yhc\n"
									 "VuwckPQq5Sabs55kTTfxL1t6uunDSJoxn7JvAS9y3Z6FEup0VYbpF4I5wxq0htzt\n"
									 "snBf8HVJFw0CO7ejac8a4ErrXJsmsZRIlQCZoFMohslYB81EEA+1Bc6FAXXqTAg=\n"
									 "-----END ENCRYPTED PRIVATE KEY-----\n";

static inline int read_test_file(const char *path, bool secret, size_t at_most, struct buf *out, struct err *err)
{
	static const struct {
		const char *path, *text;
		bool secret;
	} files[] = {{"good.pem", certificate_pem, false},
	             {"good.key", key_pem, true},
	             {"other.key", other_key_pem, true},
	             {"locked.key", locked_key_pem, true},
	             {"/etc/cheops/good.pem", certificate_pem, false},
	             {"profiler.keys", " LABKEY, second key,,\n", true},
	             {"blank.keys", " ,\n", true},
	             {"many.keys", "1,2,3,4,5,6,7,8,9", true},
	             {"empty.pem", "", false},
	             {"junk.pem", "junk", false},
	             {"broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false}};
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(files[i].path, path) != 0)
			continue;
		if (secret && !files[i].secret)
			return err_set(err, ERR_INVALID, "everybody may read or write `%s`", path);
		struct str text = str_of(files[i].text);
		buf_put(out, str_make(text.at, text.length < at_most ? text.length : at_most));
		return 0;
	}
	if (strcmp(path, "endless.pem") == 0) {
		buf_put_repeat(out, 'x', at_most);
		return 0;
	}
	return err_set(err, ERR_NOT_FOUND, "cannot read `%s`: No such file or directory", path);
}

#endif
