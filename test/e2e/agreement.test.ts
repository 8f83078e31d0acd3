/**
 * Checks every replicated log on real processes: acknowledged operations survive a kill of all processes, in one order.
 *
 * @module-tag long
 */

import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, test } from "vitest";
import { replicatedLog } from "../../src/protocols/family.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { PATIENCE_MS } from "../patience.ts";
import { endAll, until } from "./cluster-under-test.ts";
import { MembersUnderTest } from "./members-under-test.ts";

let members: MembersUnderTest;
afterEach(async () => {
  await endAll();
  members?.remove();
});

const logs = protocolNames.filter((name) => protocolNamed(name).family === replicatedLog);

/** Resolves with the first answer of a member. A repeated request is a new command. */
const answered = (id: number, operation: string): Promise<string> =>
  until(
    `member ${id} answers ${operation}`,
    async () => {
      const answer = await fetch(`${members.adminOf(id)}/request`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ type: "client", body: { type: "execute", operation } }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      }).catch(() => null);
      const { body } = ((await answer?.json()) ?? {}) as { body?: { type: string; result: string } };
      return body?.type === "result" ? `“${body.result}”` : null;
    },
    members.running.get(id),
  );

/** One of each kind: crashes with one leader, with any proposer, and Byzantine nodes. */
const kinds = ["raft", "multi-paxos", "pbft"];
test.each(logs.filter((name) => kinds.includes(name)))("%s", survivesKills);
test.each(logs.filter((name) => !kinds.includes(name)))("%s", { tags: ["larger"] }, survivesKills);

async function survivesKills(protocol: string): Promise<void> {
  members = await MembersUnderTest.of(4);
  members.rewrite({ protocol, options: { machine: { kind: "map" }, client: { retryMs: 300 } } });
  await members.serveAll();
  // The last member of cheap-paxos is an auxiliary and has no clients.
  const [first = 0, second = 0] = members.ids;
  expect(await answered(first, "put x 1")).toBe("“”");
  expect(await answered(second, "cas x 1 2")).toBe("“yes”");
  expect(await answered(first, "get x")).toBe("“2”");

  const killed = [...members.running.values()];
  for (const member of killed) member.signal("SIGKILL");
  await Promise.all(killed.map(({ finished }) => finished));
  await members.serveAll();
  expect(await answered(second, "get x")).toBe("“2”");
  expect(await answered(first, "put x 3")).toBe("“2”");
}

test("pbft: the primary is killed under load, and the others continue in a later view", async () => {
  members = await MembersUnderTest.of(4);
  members.rewrite({ protocol: "pbft", options: { machine: { kind: "counter" }, client: { retryMs: 300 } } });
  await members.serveAll();
  const [primary = 0, ...backups] = members.ids;
  await answered(primary, "add 1");

  let isLoaded = true;
  const counts = backups.map(async (id) => {
    let added = 0;
    for (; isLoaded; added++) await answered(id, "add 1");
    return added;
  });
  for (const id of backups) await answered(id, "get");
  members.running.get(primary)?.signal("SIGKILL");
  for (const id of backups) await answered(id, "get");
  isLoaded = false;
  const added = (await Promise.all(counts)).reduce((sum, each) => sum + each, 1);
  const viewOf = async (id: number) => {
    const answer = await fetch(`${members.adminOf(id)}/status`);
    const { view } = (await answer.json()) as { view: { term: number; leader: number } };
    return { term: view.term, leader: view.leader };
  };
  // The next view, or a later one if its primary was paused for too long.
  const { term, leader } = await until("the others are in one later view", async () => {
    const [first, ...others] = (await Promise.all(backups.map(viewOf))) as [{ term: number; leader: number }];
    return first.term > 0 && others.every((other) => isDeepStrictEqual(other, first)) ? first : null;
  });
  expect(leader).toBe(members.ids[term % members.ids.length]);
  for (const id of backups) {
    // A request repeated after a lost answer is a new command, so this is a lower bound.
    expect(Number((await answered(id, "get")).slice(1, -1))).toBeGreaterThanOrEqual(added);
  }
});
