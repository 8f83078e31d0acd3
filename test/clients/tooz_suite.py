"""Runs the tests of OpenStack's tooz for its etcd driver, and prints one line for each test: its name and outcome.

The argument is the URL of the backend. Debian's tooz 3.1 passes an option that only the class of Debian's etcd3gw 2.0
takes, not its function, so the driver gets the class.
"""
import os
import sys
import unittest
import warnings

from etcd3gw.client import Etcd3Client
import tooz.drivers.etcd3gw

warnings.simplefilter("ignore")
tooz.drivers.etcd3gw.etcd3gw.client = Etcd3Client
os.environ["TOOZ_TEST_URL"] = sys.argv[1]

import tooz.tests.test_coordination  # noqa: E402  It reads the URL when it is loaded.


class Outcomes(unittest.TestResult):
    def addSuccess(self, test):
        print(test.id(), "ok", flush=True)

    def addSkip(self, test, reason):
        print(test.id(), "skipped", flush=True)

    def addFailure(self, test, err):
        print(test.id(), "failed", err[1], flush=True)

    def addError(self, test, err):
        print(test.id(), "failed", repr(err[1]), flush=True)


unittest.defaultTestLoader.loadTestsFromModule(tooz.tests.test_coordination).run(Outcomes())
