/**
 * Four PBFT replicas as real processes, of which one lies, under load: the others decide throughout, and what their clients see
 * is linearizable. A liar that signs something new is a lying client as well: it asks in its own name for what it has seen others ask
 * for, and that is in the log by right (`coterie sim pbft --byzantine 0=equivocate --propose 1,2,3 --seed 2` shows one command
 * twice). The history of the others alone tells nothing then, so beside such a liar they only have to decide.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { checkLinearizability, drawText } from "../../src/check/linearizability/index.ts";
import { random } from "../../src/core/random.ts";
import type { BehaviourName } from "../../src/protocols/byzantine.ts";
import type { NodeStatus } from "../../src/runtime/admin-pages.ts";
import { machineModel } from "../protocols/logs/machine-model.ts";
import { endAll, until } from "./cluster-under-test.ts";
import { LogClients } from "./log-clients.ts";
import { MembersUnderTest } from "./members-under-test.ts";

const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 3;
/** Member 1 is the primary of the first view. */
const PRIMARY = 1;

let members: MembersUnderTest;
let clients: LogClients;
afterEach(async () => {
  clients?.stop();
  await endAll();
  members?.remove();
});

const statusOf = async (id: number): Promise<NodeStatus> =>
  (await (await fetch(`${members.adminOf(id)}/status`)).json()) as NodeStatus;

/** Those who sign what nobody has said. */
const INVENTORS: readonly BehaviourName[] = ["equivocate", "forge", "adversary"];

/** @param deeds how often the clients have to be answered anew, a while apart */
async function beside(liar: number, behaviour: BehaviourName, deeds: number): Promise<void> {
  console.log(`member ${liar}, ${behaviour}: COTERIE_SEED=${seed}`);
  const draw = random(seed).stream(behaviour);
  members = await MembersUnderTest.of(4);
  members.rewrite({ protocol: "pbft", options: { machine: { kind: "map" } } });
  const lying = ["--byzantine", behaviour, "--seed", String(draw.below(2 ** 31))];
  for (const id of members.ids) members.serve(id, ...(id === liar ? lying : []));
  const honest = members.ids.filter((id) => id !== liar);
  // A client takes the word of its own replica, so a liar's clients are not spoken of.
  clients = new LogClients(Object.create(members, { ids: { value: honest } }) as MembersUnderTest, draw);
  await clients.progress(0);
  clients.start(CLIENTS);
  for (let deed = 0; deed < deeds; deed++) {
    const { acknowledged } = clients;
    await clients.progress(acknowledged + CLIENTS);
    await sleep(100);
  }
  const { acknowledged } = clients;
  await clients.end();
  if (!INVENTORS.includes(behaviour)) {
    const report = checkLinearizability(clients.history, machineModel("map"));
    const findings = report.findings.map((finding) => drawText(finding, { model: report.model }));
    expect(report.verdict, findings.join("\n")).toBe("holds");
  }
  for (const id of honest) {
    const member = members.running.get(id);
    expect(member?.stderr, `member ${id}`).not.toMatch(/InvariantViolation|coterie: |this cannot/);
    const { peers } = await statusOf(id);
    expect(Math.max(...peers.map(({ queuedBytes }) => queuedBytes))).toBeLessThan(8 * 2 ** 20);
  }
  expect(members.running.get(liar)?.stderr).toContain(`this member lies (${behaviour}`);
  expect((await statusOf(liar)).byzantine).toBe(behaviour);
  console.log(`member ${liar}, ${behaviour}: ${acknowledged} operations acknowledged`);
}

test("a primary that says nothing is replaced, and the others decide", async () => {
  await beside(PRIMARY, "mute", 3);
  for (const id of [2, 3, 4])
    await until(`member ${id} is in a later view`, async () => {
      const { leader, term } = await statusOf(id);
      return leader !== PRIMARY && (term ?? 0) > 0;
    });
});

test.each<BehaviourName>(["flood", "equivocate", "replay", "withhold", "forge"])(
  "a primary of whom this is true, under load: %s",
  { tags: ["long"] },
  (behaviour) => beside(PRIMARY, behaviour, 10),
);
