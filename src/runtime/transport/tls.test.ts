/**
 * Checks mutual TLS: both ends prove which node they are. A peer that cannot do so is refused, and members can still
 * communicate.
 */

import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { type ConnectionOptions, connect, TLSSocket } from "node:tls";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { helloOf } from "../../../test/network/caller.ts";
import { type Authority, authority } from "../../../test/network/certificates.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { expectNothingLeft, handlesAtRest } from "../../../test/network/open-handles.ts";
import { numbered, type TransportUnderTest, transportUnderTest } from "../../../test/network/transport-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { TlsMaterial } from "../platform/platform.ts";
import { helloCodec } from "./frames.ts";

let atRest: string[] = [];
afterEach(() => expectNothingLeft(atRest));
const closing = closedAfterEach();
afterEach(async () => {
  await expectTraffic();
  expect(member.fatal).toEqual([]);
});

const MAX_STRANGERS = 8;

let ours: Authority;
let others: Authority;
let nodes: TlsMaterial[];
let ports: Record<number, number>;
/** Nodes 0 and 1. Node 2 is on the list, but has no process. */
let member: TransportUnderTest;
let friend: TransportUnderTest;
let sent: number;

beforeAll(async () => {
  [ours, others] = await Promise.all([authority("ours"), authority("others")]);
  nodes = await Promise.all([0, 1, 2].map((id) => ours.issue(`node-${id}`)));
});

beforeEach(async () => {
  atRest = await handlesAtRest();
  await begin();
});

/**
 * Starts the members. The default handshake timeout is longer than any test takes, even on a busy machine. It is meant
 * for tests that do not wait for it.
 */
async function begin(handshakeTimeoutMs = 300_000): Promise<void> {
  const [zero, one, two] = (await freePorts(3)) as [number, number, number];
  ports = { 0: zero, 1: one, 2: two };
  member = closing(
    transportUnderTest({
      self: 0,
      ports,
      tls: nodes[0] as TlsMaterial,
      limits: { handshakeTimeoutMs, maxStrangers: MAX_STRANGERS },
    }),
  );
  friend = closing(transportUnderTest({ self: 1, ports, tls: nodes[1] as TlsMaterial }));
  await member.open();
  await friend.open();
  sent = 0;
  await expectTraffic();
}

/** Starts members with a short timeout, for tests that wait for it. */
async function beginInHaste(): Promise<void> {
  await begin(500);
  member.counts.refused = {}; // If this process was paused, the friend's own handshake may have come too late at first.
}

async function expectTraffic(): Promise<void> {
  sent += 1;
  friend.transport.send(0, numbered(sent));
  member.transport.send(1, numbered(sent));
  const all = Array.from({ length: sent }, (_, i) => i + 1);
  await vi.waitFor(() => {
    expect(member.from(1)).toEqual(all);
    expect(friend.from(0)).toEqual(all);
  }, PATIENCE);
}

/** Connects to node 0 with these options and claims to be node 2. Resolves once the connection is closed. */
async function call(options: ConnectionOptions): Promise<void> {
  const port = ports[0] as number;
  const socket: TLSSocket = connect({
    host: "127.0.0.1",
    port,
    servername: "node-0",
    rejectUnauthorized: false,
    ...options,
  });
  socket.on("error", () => {}); // `close` follows.
  socket.once("secureConnect", () => socket.write(helloCodec.frame(helloOf(2, 0))));
  socket.resume();
  await new Promise<void>((resolve) => socket.once("close", () => resolve()));
}

const tlsOf = (id: number): TlsMaterial => nodes[id] as TlsMaterial;

const refusals = (): string[] => member.lines.filter((line) => line.startsWith("refused"));

describe("a caller", () => {
  test("with the certificate of the node that it claims to be is admitted", async () => {
    const second = closing(transportUnderTest({ self: 2, ports, tls: nodes[2] as TlsMaterial }));
    await second.open();
    second.transport.send(0, numbered(7));
    await vi.waitFor(() => expect(member.from(2)).toEqual([7]), PATIENCE);
    expect(member.counts.refused).toEqual({});
  });

  test.each<[string, () => Promise<ConnectionOptions> | ConnectionOptions, RegExp]>([
    ["without a certificate", () => ({}), /\(tls\): .*(peer did not return a certificate|ERR_SSL)/],
    ["with a certificate of another authority", () => others.issue("node-2"), /\(tls\): ./],
    [
      "with an older TLS",
      () => ({ ...(nodes[2] as TlsMaterial), maxVersion: "TLSv1.2" }),
      /\(tls\): .*unsupported protocol/,
    ],
    [
      "with another node's certificate",
      () => nodes[1] as TlsMaterial,
      /\(wrong-certificate\): expected a certificate for the name node-2/,
    ],
    [
      "with a certificate that has expired",
      () => ours.issueEarlier(3, "node-2"),
      /\(tls\): that member's certificate has expired: replace the file \(coterie cert ID --renew .*CERT_HAS_EXPIRED/,
    ],
    [
      "with a certificate that is not valid yet",
      () => ours.issueEarlier(-3, "node-2"),
      /\(tls\): that member's certificate is not valid yet: correct the clocks on the two machines/,
    ],
    ["with a certificate for all", () => ours.issue("*", "node-*", "node-22"), /\(wrong-certificate\): ./],
  ])("%s is refused, which is counted and logged once", async (_who, credentials, line) => {
    const options = await credentials();
    for (let i = 0; i < 3; i++) await call(options);
    const reason = line.source.includes("tls") ? "tls" : "wrong-certificate";
    await vi.waitFor(() => expect(member.counts.refused).toEqual({ [reason]: 3 }), PATIENCE);
    expect(refusals()).toEqual([expect.stringMatching(line)]);
    expect(refusals().join()).not.toContain("\n");
    expect(member.from(2)).toEqual([]);
  });

  test("that does not speak TLS is refused", async () => {
    const socket = connectTcp(ports[0] as number, "127.0.0.1");
    socket.on("error", () => {}).resume();
    socket.write(helloCodec.frame(helloOf(2, 0)));
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await vi.waitFor(() => expect(member.counts.refused).toEqual({ tls: 1 }), PATIENCE);
  });

  test("that starts no TLS handshake is dropped", async () => {
    await beginInHaste();
    const socket = connectTcp(ports[0] as number, "127.0.0.1");
    socket.on("error", () => {}).resume();
    await once(socket, "close");
    await vi.waitFor(() => expect(member.counts.refused).toEqual({ tls: 1 }), PATIENCE);
  });
});

describe("silent connections", () => {
  test.each<[string, () => Socket]>([
    ["and begin no TLS", () => connectTcp(ports[0] as number, "127.0.0.1")],
    ["after TLS", () => connect({ host: "127.0.0.1", port: ports[0], ...tlsOf(2), servername: "node-0" })],
  ])("%s cannot keep members out: beyond the limit the oldest is closed", async (_when, begin) => {
    const silent: Socket[] = [];
    for (let i = 0; i < MAX_STRANGERS + 3; i++) {
      const socket = begin().on("error", () => {});
      closing({ close: () => socket.destroy() });
      silent.push(socket.resume());
      await once(socket, socket instanceof TLSSocket ? "secureConnect" : "connect");
    }
    await vi.waitFor(() => expect(silent.slice(0, 3).every(({ closed }) => closed)).toBe(true), PATIENCE);
    expect(member.counts.refused["too-many-strangers"]).toBe(3);
    expect(refusals()[0]).toMatch(/\(too-many-strangers\): more than 8 connections/);
    const second = closing(transportUnderTest({ self: 2, ports, tls: tlsOf(2) }));
    await second.open();
    second.transport.send(0, numbered(7));
    await vi.waitFor(() => expect(member.from(2)).toEqual([7]), PATIENCE);
  });
});

describe("a called node", () => {
  test.each(["1", "0"])(
    "that has another node's certificate gets no message (environment: %s)",
    async (environment) => {
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", environment);
      onTestFinished(() => void vi.unstubAllEnvs());
      const impostor = closing(transportUnderTest({ self: 2, ports, tls: nodes[1] as TlsMaterial }));
      await impostor.open();
      member.transport.send(2, numbered(7));
      await vi.waitFor(() => expect(member.lines.join()).toMatch(/the link to node 2 fails: .*altnames/), PATIENCE);
      expect(impostor.from(0)).toEqual([]);
    },
  );
});

describe("a called node whose certificate has expired", () => {
  test("gets no messages, and its caller logs why; once it has a new one, queued messages arrive", async () => {
    const late = closing(transportUnderTest({ self: 2, ports, tls: await ours.issueEarlier(3, "node-2") }));
    await late.open();
    member.transport.send(2, numbered(7));
    const sentence =
      /the link to node 2 fails: that member's certificate has expired: replace the file .*\(certificate has expired\)/;
    await vi.waitFor(() => expect(member.lines.join()).toMatch(sentence), PATIENCE);
    expect(late.from(0)).toEqual([]);
    late.transport.renew(nodes[2] as TlsMaterial);
    await vi.waitFor(() => expect(late.from(0)).toEqual([7]), PATIENCE);
  });
});

describe("renewed certificates", () => {
  const serialShown = async (): Promise<string> => {
    const socket = connect({ port: ports[0], host: "127.0.0.1", rejectUnauthorized: false, ...nodes[1] });
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerX509Certificate() as X509Certificate;
    socket.destroy();
    return serialNumber;
  };

  test("are used for new connections, and open ones stay", async () => {
    const renewed = await ours.issue("node-0");
    member.transport.renew(renewed);
    expect(await serialShown()).toBe(new X509Certificate(renewed.cert).serialNumber);
    expect(member.transport.peers.find(({ id }) => id === 1)?.link).toBe("open");
  });

  test("are rejected if they do not fit together, and the previous ones stay", async () => {
    const before = await serialShown();
    const { ca, cert } = await ours.issue("node-0");
    const { key } = nodes[1] as TlsMaterial;
    expect(() => member.transport.renew({ ca, cert, key })).toThrow(/expected the certificate, its key and .* PEM/);
    expect(await serialShown()).toBe(before);
  });
});

describe("a certificate and key that do not fit together", () => {
  test("are rejected in one sentence before anything is opened", () => {
    const { ca, cert } = nodes[0] as TlsMaterial;
    const { key } = nodes[1] as TlsMaterial;
    for (const tls of [
      { ca, cert, key },
      { ca, cert: "not PEM", key },
    ])
      expect(() => transportUnderTest({ self: 0, ports, tls })).toThrow(/expected the certificate, its key and .* PEM/);
  });
});
