/**
 * Clients use all shared objects of a cluster while its members are killed, paused, cut off, short of disk space, on
 * slow disks and wrong clocks, restarted and upgraded one by one, added, removed, replaced and moved. Reads and writes
 * of keys are linearizable, no acknowledged operation is lost or applied twice, watches have no gap, no two clients
 * hold one lock, and no stale token is accepted. At the same time members use a channel of the log: all deliver the
 * same messages in the same order and have the same state. COTERIE_SOAK_MINUTES=60 sets the duration, but each kind of
 * fault occurs at least once; COTERIE_SEED repeats its plan.
 *
 * @module-tag long
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { checkLinearizability, drawText } from "../../src/history/index.ts";
import { map } from "../../src/history/model.ts";
import { ChangingMembers, type Deed, deeds } from "./changing-members.ts";
import { endAll } from "./cluster-under-test.ts";
import { buildLaterRelease } from "./later-release.ts";
import { WorkingClients } from "./working-clients.ts";

const MINUTE_MS = 60_000;
const minutes = Number(process.env.COTERIE_SOAK_MINUTES ?? 3);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const SAYS_EVERY_ROUNDS = 10;
const WEIGHS_EVERY_MS = 10 * MINUTE_MS;
const MOST_FOLDER_BYTES = 48 << 20;
const MOST_MEMORY_BYTES = 512 << 20;

let later: string;
let members: ChangingMembers;
let clients: WorkingClients;
afterEach(async () => {
  await clients?.abandon();
  members?.remove();
  await endAll();
  rmSync(later, { recursive: true, force: true });
});

test(`through ${minutes} minutes of faults and changes of members nothing is lost, doubled or held twice`, async () => {
  console.log(`members: COTERIE_SOAK_MINUTES=${minutes} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  later = mkdtempSync(join(tmpdir(), "coterie-release-"));
  members = new ChangingMembers(draw.stream("members"), buildLaterRelease(later).packageUrl);
  await members.found();
  clients = new WorkingClients(members.endpoints, draw.stream("clients"));
  await clients.start();
  await clients.progress();
  const done: Deed[] = [];
  let weighed = 0;
  const began = performance.now();
  const isEnough = (): boolean => performance.now() - began >= minutes * MINUTE_MS && members.hasDoneEach;
  try {
    for (let round = 1; !isEnough(); round++) {
      done.push(members.pick());
      await members.carryOut(done.at(-1) as Deed);
      await clients.progress();
      await members.converse();
      clients.renewKeys();
      const weight = await members.weigh();
      if (performance.now() - began >= weighed * WEIGHS_EVERY_MS) note(weight);
      if (round % SAYS_EVERY_ROUNDS === 0) say(round);
    }
    await clients.end();
    note(await members.weigh());
    members.conversation.end();
  } catch (error) {
    console.log(`members: failed, COTERIE_SEED=${seed}, after ${done.slice(-6).join(", ")}\n${members.standing}`);
    console.log(members.conversation.standing);
    throw error;
  }
  say(done.length);
  console.log(`members: ${deeds.map((deed) => `${deed} ${done.filter((each) => each === deed).length}`).join(", ")}`);
  expect(clients.wrong).toEqual([]);
  const { verdict, findings, model } = checkLinearizability(clients.history, map());
  const pictures = findings.map((finding) => (finding.verdict === "holds" ? "" : drawText(finding, { model })));
  expect(verdict, pictures.join("\n")).toBe("holds");
  expect(members.most.folder).toBeLessThan(MOST_FOLDER_BYTES);
  expect(members.most.memory).toBeLessThan(MOST_MEMORY_BYTES);

  /** Records the sizes. Called at the beginning, every ten minutes and at the end. */
  function note({ folders, memory }: Awaited<ReturnType<ChangingMembers["weigh"]>>): void {
    const minute = Math.round((performance.now() - began) / MINUTE_MS);
    console.log(`members: minute ${minute}: processes ${memory.join(", ")} MiB, folders ${folders.join(", ")} MiB`);
    weighed += 1;
  }

  function say(round: number): void {
    const seconds = Math.round((performance.now() - began) / 1_000);
    const [folder, memory] = [members.most.folder, members.most.memory].map((bytes) => (bytes / 2 ** 20).toFixed(1));
    console.log(`members: ${members.conversation.account}`);
    const { disk, removed } = members.ended;
    console.log(`members: ${round} deeds in ${seconds} s: ${clients.account}`);
    console.log(`members: ${disk} ended with a full disk, ${removed} were notified of their removal`);
    console.log(`members: the largest folder reached ${folder} MiB, the largest process ${memory} MiB`);
  }
});
