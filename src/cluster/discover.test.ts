/** Checks the discovery of members through DNS, with a DNS server in the test. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { discover } from "./discover.ts";

const NAME = "_members._tcp.coterie.shop.svc.cluster.local";
const hostOf = (id: number | string): string => `coterie-${id}.coterie.shop.svc.cluster.local`;

let server: Socket;
afterEach(() => server.close());

/** Starts a DNS server for one name. Each query gets the next answer, and later queries get the last one. */
async function serving(
  ...answers: readonly (readonly string[])[]
): Promise<{ servers: string[]; questions: () => number }> {
  server = createSocket("udp4");
  let questions = 0;
  server.on("message", (question, { port, address }) => {
    const hosts = answers[Math.min(questions, answers.length - 1)] ?? [];
    questions += 1;
    server.send(answerTo(question, hosts), port, address);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  return { servers: [`127.0.0.1:${server.address().port}`], questions: () => questions };
}

/**
 * Creates a response according to RFC 1035 and 2782: the query's header with other flags and counts, the question, and
 * a record for each host.
 */
function answerTo(question: Buffer, hosts: readonly string[]): Buffer {
  const end = question.indexOf(0, 12) + 5;
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(hosts.length > 0 ? 0x81_80 : 0x81_83, 2); // An answer, or "no such name".
  header.writeUInt16BE(hosts.length, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, question.subarray(12, end), ...hosts.map(recordOf)]);
}

function recordOf(host: string): Buffer {
  const target = Buffer.concat(
    [...host.split("."), ""].map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
  );
  const fixed = Buffer.alloc(18);
  fixed.writeUInt16BE(0xc0_0c, 0); // The requested name.
  fixed.writeUInt16BE(33, 2); // SRV
  fixed.writeUInt16BE(1, 4); // IN
  fixed.writeUInt32BE(0, 6);
  fixed.writeUInt16BE(6 + target.length, 10);
  fixed.writeUInt16BE(7_100, 16);
  return Buffer.concat([fixed, target]);
}

test("takes ids from host names, and returns the members with the lowest ids as founders", async () => {
  const { servers } = await serving([3, 1, 0, 2].map(hostOf));
  expect(await discover(NAME, { count: 3, servers })).toEqual({
    0: `${hostOf(0)}:7100`,
    1: `${hostOf(1)}:7100`,
    2: `${hostOf(2)}:7100`,
  });
});

test("repeats the lookup until DNS lists enough members", async () => {
  const { servers, questions } = await serving([], [hostOf(0)], [0, 1].map(hostOf));
  expect(Object.keys(await discover(NAME, { count: 2, servers }))).toEqual(["0", "1"]);
  expect(questions()).toBe(3);
});

test("rejects invalid options with one sentence", async () => {
  const { servers } = await serving([hostOf(0), "elsewhere.coterie.shop.svc.cluster.local"]);
  await expect(discover(NAME, { count: 2, servers })).rejects.toThrow(
    `expected a host of ${NAME} to be one such as coterie-2.coterie, which is member 2, got "elsewhere.coterie`,
  );
  await expect(discover(NAME, { count: 0, servers })).rejects.toThrow("count");
  server.close();
  const { servers: silent } = await serving([]);
  await expect(discover(NAME, { count: 2, servers: silent, timeoutMs: 1 })).rejects.toThrow(
    `expected 2 members in the SRV records of ${NAME} within 1 ms, got 0 (ENOTFOUND)`,
  );
  const reason = new Error("no more");
  await expect(discover(NAME, { count: 2, servers: silent, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("rejects two hosts with one number", async () => {
  const { servers } = await serving([hostOf("1"), `${hostOf("01")}`]);
  await expect(discover(NAME, { count: 2, servers })).rejects.toThrow("with the number 1, got");
});
