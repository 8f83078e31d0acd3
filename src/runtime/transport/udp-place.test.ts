import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../core/errors.ts";
import { realPlatform } from "../platform/real.ts";
import { settlePlace as settle, type UdpPlace } from "./udp-place.ts";

const settlePlace = (place: UdpPlace) => settle(place, realPlatform.datagrams);
const place: UdpPlace = { group: "239.1.2.3", port: 7_000, interface: "127.0.0.1" };
const key = "0123456789abcdef";
/** One of this machine's addresses that other machines can reach, if there is one. */
const outside = Object.values(networkInterfaces())
  .flatMap((addresses = []) => addresses)
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

describe("where a group's datagrams go", () => {
  test("does not exist on a platform without datagrams", () => {
    expect(() => settle(place, null)).toThrow("this platform does not support datagrams");
  });

  test("stays in the local network by default, with datagrams as large as the interface allows", () => {
    expect(settlePlace(place)).toEqual({ ...place, ttl: 1, key: null, maxDatagramBytes: 65_000 });
    expect(settlePlace({ ...place, ttl: 3, maxDatagramBytes: 9_000 })).toMatchObject({
      ttl: 3,
      maxDatagramBytes: 9_000,
    });
  });

  test("may be given by the name of the interface", () => {
    const [name] = Object.entries(networkInterfaces()).find(([, all]) => all?.[0]?.internal) ?? [];
    expect(settlePlace({ ...place, interface: name as string }).interface).toBe("127.0.0.1");
  });

  test.each(["224.0.1.0", "239.255.255.255", "232.1.1.1"])("may be the group %s", (group) => {
    expect(settlePlace({ ...place, group }).group).toBe(group);
  });

  test.each<[Partial<UdpPlace>, string]>([
    [
      { group: "10.0.0.1" },
      'expected multicast.group to be an IPv4 address from 224.0.1.0 to 239.255.255.255, got "10.0.0.1": 239.0.0.0 to 239.255.255.255 are for use within a site',
    ],
    [
      { group: "224.0.0.7" },
      'expected multicast.group to be an IPv4 address from 224.0.1.0 to 239.255.255.255, got "224.0.0.7": routers and neighbors use 224.0.0.0 to 224.0.0.255 among themselves',
    ],
    [{ group: "240.0.0.1" }, "expected multicast.group to be"],
    [{ group: "ff02::1" }, "expected multicast.group to be"],
    [{ group: "239.1.2" }, "expected multicast.group to be"],
    [{ port: 0 }, "expected multicast.port to be a whole number from 1 to 65535, got 0"],
    [{ port: 65_536 }, "expected multicast.port to be a whole number from 1 to 65535, got 65536"],
    [{ ttl: 256 }, "expected multicast.ttl to be a whole number from 0 to 255, got 256"],
    [{ ttl: 1.5 }, "expected multicast.ttl to be a whole number from 0 to 255, got 1.5"],
    [
      { maxDatagramBytes: 65_507 },
      "expected multicast.maxDatagramBytes to be a whole number from 512 to 65000, got 65507",
    ],
    [{ maxDatagramBytes: 100 }, "expected multicast.maxDatagramBytes to be a whole number from 512 to 65000, got 100"],
    [
      { interface: "nowhere0" },
      "expected multicast.interface to be the name or an IPv4 address of an interface of this machine: ",
    ],
    [{ interface: "203.0.113.7" }, "expected multicast.interface to be the name or an IPv4 address"],
    [
      { key: "short" },
      "expected multicast.key to have at least 16 characters, got 5: `openssl rand -hex 32` makes a good one",
    ],
    [{ key: 1234567890123456 as never }, "expected multicast.key to be a string, got a value of type number"],
    [{ key: {} as never }, "expected multicast.key to be a string, got a value of type object"],
  ])("may not be %j", (change, problem) => {
    expect(() => settlePlace({ ...place, ...change })).toThrow(UsageError);
    expect(() => settlePlace({ ...place, ...change })).toThrow(problem);
  });

  test("needs a key even on a loopback interface if links are encrypted", () => {
    expect(() => settlePlace({ ...place, tls: "on" })).toThrow(
      'expected multicast.key to be set, because "tls" protects only the links: without a key, any program that can reach 127.0.0.1 can multicast as a member: set it to a secret that all members share',
    );
    expect(settlePlace({ ...place, tls: "on", key })).toMatchObject({ key, maxDatagramBytes: 65_000 });
    expect(settlePlace({ ...place, tls: "off" })).toMatchObject({ key: null });
  });

  test.skipIf(outside === undefined)("needs a key if other machines can listen, unless TLS is explicitly off", () => {
    const beyond = { ...place, interface: outside as string };
    expect(() => settlePlace(beyond)).toThrow(
      `expected multicast.key to be set, because other machines can read and forge the messages sent to ${outside}: set it to a secret that all members share, or "tls": "off" in a trusted network`,
    );
    expect(settlePlace({ ...beyond, key })).toMatchObject({ key, maxDatagramBytes: 1_400 });
    expect(settlePlace({ ...beyond, tls: "off" })).toMatchObject({ key: null });
  });
});
