/**
 * Checks the ZooKeeper protocol with a server inside the test, and the names of znodes. Tests with a real server are in
 * test/engines/real.
 */
import { createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { byCodePoint } from "./store.ts";
import { zookeeper } from "./zookeeper.ts";
import { ZookeeperConnection } from "./zookeeper-connection.ts";
import { ZookeeperPaths } from "./zookeeper-paths.ts";
import type { Request } from "./zookeeper-wire.ts";

const int = (value: number): Buffer => {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
};
const long = (value: bigint): Buffer => {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(value);
  return buffer;
};
const framed = (...parts: Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([int(body.length), body]);
};
const header = (xid: number, zxid: bigint, code = 0): Buffer => Buffer.concat([int(xid), long(zxid), int(code)]);
const stat = (zxid: bigint): Buffer =>
  Buffer.concat([
    long(zxid),
    long(zxid),
    long(0n),
    long(0n),
    int(3),
    int(5),
    int(0),
    long(0n),
    int(2),
    int(1),
    long(7n),
  ]);
const session = framed(int(0), int(4_000), long(5n), int(16), Buffer.alloc(16), Buffer.from([0]));

const servers: Server[] = [];
const connections: ZookeeperConnection[] = [];
afterEach(() => {
  for (const connection of connections.splice(0)) connection.end();
  for (const server of servers.splice(0)) server.close();
});

/** Connects to a server that opens a session and answers each later request with `answer`. */
async function connected(answer: (xid: number, socket: Socket) => void): Promise<ZookeeperConnection> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write(session);
      let rest = Buffer.alloc(0);
      socket.on("data", (data: Buffer) => {
        rest = Buffer.concat([rest, data]);
        while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE()) {
          answer(rest.readInt32BE(4), socket);
          rest = rest.subarray(4 + rest.readInt32BE());
        }
      });
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const request = { tls: undefined, timeoutMs: 4_000, session: null };
  const connection = await ZookeeperConnection.open({ host: "127.0.0.1", port }, request);
  connections.push(connection);
  return connection;
}

const get: Request = { type: "get", path: "/a", isWatched: false };
const set: Request = { type: "set", path: "/a", data: "x", version: -1 };
const check = { type: "check", path: "/a", version: 1 } as const;

describe("a connection", () => {
  it("reads bytes in any chunks, and zxids of later leaders exactly", async () => {
    const zxid = (70_000n << 32n) + 9n;
    const connection = await connected((xid, socket) => {
      const answer = framed(header(xid, zxid), int(4), Buffer.from("😀"), stat(zxid - 1n));
      for (const byte of answer) socket.write(Buffer.from([byte]));
    });
    const [one, two] = await Promise.all([connection.ask(get), connection.ask(get)]);
    const read = { czxid: Number(zxid - 1n), mzxid: Number(zxid - 1n), pzxid: 7, version: 3, created: 3 };
    expect(one).toEqual({ zxid: Number(zxid), code: 0, data: "😀", stat: read });
    expect(two).toEqual(one);
    expect(BigInt((one.stat as { mzxid: number }).mzxid)).toBe(zxid - 1n);
  });

  it("ends at a zxid that cannot be a token", async () => {
    const connection = await connected((xid, socket) => socket.write(framed(header(xid, 2n ** 52n, -101))));
    await expect(connection.ask(get)).rejects.toThrow("expected a zxid of ZooKeeper below 2^52");
    expect(connection.isOver).toBe(true);
  });

  it("reports whether lost requests may have been applied", async () => {
    const connection = await connected((_xid, socket) => socket.destroy());
    const asked: Request[] = [get, set, { type: "multi", steps: [check] }, { type: "multi", steps: [check, set] }];
    const lost = await Promise.allSettled(asked.map((request) => connection.ask(request)));
    const reasons = lost.map((each) => (each.status === "rejected" ? (each.reason as object) : null));
    expect(reasons).toMatchObject([false, true, false, true].map((isUncertain) => ({ isUncertain })));
    await expect(connection.ask(set)).rejects.toMatchObject({ isUncertain: false });
  });

  it("ends on an answer to a different request, or one that is too short", async () => {
    const mistaken = await connected((xid, socket) => socket.write(framed(header(xid + 1, 1n, -101))));
    await expect(mistaken.ask(get)).rejects.toThrow("unknown request");
    const short = await connected((xid, socket) =>
      socket.write(framed(header(xid, 1n), int(-1), Buffer.from([1]), int(-1))),
    );
    await expect(short.ask({ type: "multi", steps: [check] })).rejects.toThrow(
      "the answer has fewer results than the request",
    );
  });

  it("receives watches between answers, and the results of a multi", async () => {
    const connection = await connected((xid, socket) => {
      socket.write(framed(header(-1, -1n), int(3), int(3), int(2), Buffer.from("/a")));
      const failed = [int(-1), Buffer.from([0]), int(-103), int(-103)];
      const made = [int(1), Buffer.from([0]), int(-1), int(2), Buffer.from("/a")];
      socket.write(framed(header(xid, 8n), ...made, ...failed));
    });
    let heard = 0;
    connection.onWatch = () => (heard += 1);
    const steps = [{ type: "create", path: "/a", data: "", kind: "persistent" } as const, check];
    const { results } = await connection.ask({ type: "multi", steps });
    expect(results).toEqual([{ code: 0, path: "/a" }, { code: -103 }]);
    expect(heard).toBe(1);
  });
});

describe("names of znodes", () => {
  const paths = new ZookeeperPaths("/some/where");

  it("encode any key, and decode to it", () => {
    const end = fc.string({ unit: "grapheme", maxLength: 20 });
    fc.assert(
      fc.property(fc.constantFrom("m/map/", "l/m/map/", "g/", "c/"), end, (begin, rest) => {
        const path = paths.entry(begin + rest);
        expect(path).toMatch(/^\/some\/where\/entries\/k[\w.!~*'()%-]+\/k[\w.!~*'()%-]*$/);
        expect(paths.key(begin, path.slice(path.lastIndexOf("/") + 1))).toBe(begin + rest);
        expect(paths.folder(begin + rest)).toBe(paths.folder(begin));
      }),
    );
  });

  it("list their ancestors", () => {
    expect(paths.roots).toEqual(["/some", "/some/where"]);
    expect(paths.record(3, 12)).toBe("/some/where/changes/3/r0000000012");
  });
});

it("keys are ordered by their bytes", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 4 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(Math.sign(byCodePoint(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
});

it.each([
  [{ servers: [] }, "expected servers of zookeeper() to be a list of addresses"],
  [{ servers: ["a:b:c"] }, "expected servers of zookeeper() to be a list of addresses"],
  [{ servers: ["10.0.0.1:2181"], path: "coterie" }, "expected path of zookeeper() to be a path"],
])("rejects %j", (options, text) => {
  expect(() => zookeeper(options)).toThrow(text);
});

it.each(["10.0.0.1:2181", "zookeeper.example", "[::1]:2181"])("accepts %s as an address", (server) => {
  expect(zookeeper({ servers: [server] }).name).toBe("zookeeper");
});
