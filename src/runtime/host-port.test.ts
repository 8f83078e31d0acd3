import { expect, test } from "vitest";
import { formatHostPort } from "./host-port.ts";

test.each([
  ["localhost", "localhost:7100"],
  ["127.0.0.1", "127.0.0.1:7100"],
  ["::1", "[::1]:7100"],
  ["fe80::1%eth0", "[fe80::1%eth0]:7100"],
])("formats %s as %s", (host, written) => {
  expect(formatHostPort({ host, port: 7100 })).toBe(written);
});
