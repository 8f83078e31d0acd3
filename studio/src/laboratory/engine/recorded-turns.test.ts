/** Tests that link faults of a recorded cluster are drawn as in a simulated run, and last in its forks. */
import { expect, test } from "vitest";
import type { Act, NetworkPicture } from "../../../../src/cluster/feed.ts";
import { changesOf, healthyNetwork, networkAfter } from "../../../../src/cluster/local/wanted-network.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { Words } from "./recipe.ts";

type NetworkAct = Parameters<typeof networkAfter>[1] & Act;

const BOOT_MS = 1_795_454_922_546;
const NODES = [0, 1, 2, 3];

/** Opens a bully run as recorded by a live cluster, with link faults as recorded by the supervisor. */
async function recorded(acts: readonly (readonly [at: number, act: NetworkAct])[]): Promise<TestedLaboratory> {
  const laboratory = new TestedLaboratory();
  await laboratory.run({ protocol: "bully", nodes: "4" });
  const [header = "", ...lines] = (await laboratory.export()).trimEnd().split("\n");
  const live = lines.map((line) => {
    const { clock: _clock, ...entry } = JSON.parse(line) as TraceEntry & { clock: unknown };
    return { ...entry, at: entry.at + BOOT_MS };
  });
  let before: NetworkPicture = healthyNetwork;
  for (const [at, act] of acts) {
    const after = networkAfter(before, act, NODES);
    for (const node of NODES)
      for (const what of changesOf(node, before, after))
        live.push({ at: BOOT_MS + at + node / 10, node, kind: "fault", what });
    before = after;
  }
  const written = header.replace('"simulator"', '"cluster"');
  await laboratory.open("live.jsonl", [written, ...live.map((entry) => JSON.stringify(entry)), ""].join("\n"));
  return laboratory;
}

const RECORDING = { recording: "live.jsonl", protocol: "bully" };
/** Returns the network conditions in order, except conditions of zero duration. */
async function networksOf(laboratory: TestedLaboratory, words: Words = RECORDING): Promise<string[]> {
  const { networks } = (await laboratory.run(words)).drawing.axes.time;
  const lasting = networks.filter(({ since }, place) => since !== networks[place + 1]?.since);
  return lasting.map(({ words: said }) => said).filter((said, place, all) => said !== all[place - 1]);
}

test("shows splits, cuts, loss and delay as spans from their beginning until the heal", async () => {
  const laboratory = await recorded([
    [
      5,
      {
        type: "split",
        groups: [
          [0, 1],
          [2, 3],
        ],
      },
    ],
    [30, { type: "link-conditions", dropRate: 0.075, delayMs: [10, 50] }],
    [60, { type: "heal" }],
    [90, { type: "cut", nodes: [1, 3] }],
    [120, { type: "mend", nodes: [1, 3] }],
  ]);
  expect(await networksOf(laboratory)).toEqual([
    "split: 0, 1 | 2, 3",
    "split: 0, 1 | 2, 3; 7.5 % of the messages dropped; 10 to 50 ms of delay",
    "",
    "cut: 1 – 3",
    "",
  ]);
});

test("accepts older notations of conditions, and ignores faults that do not concern links", async () => {
  const laboratory = await recorded([]);
  const text = (await laboratory.export()).trimEnd().concat(
    ...NODES.map((node) => {
      const what = "20 % of its messages dropped, others delayed by 0 to 30 ms";
      return `\n${JSON.stringify({ at: BOOT_MS + 7, node, kind: "fault", what })}`;
    }),
    `\n${JSON.stringify({ at: BOOT_MS + 8, node: 1, kind: "fault", what: "journal damaged at record 2 of 3" })}\n`,
  );
  await laboratory.run(RECORDING);
  await laboratory.open("older.jsonl", text);
  const said = await networksOf(laboratory, { recording: "older.jsonl", protocol: "bully" });
  expect(said).toEqual(["20 % of the messages dropped; 0 to 30 ms of delay"]);
});

test("keeps earlier link faults in a fork, and reports them once", async () => {
  const laboratory = await recorded([[5, { type: "split", groups: [[0, 1, 2], [3]] }]]);
  const { steps } = await laboratory.run(RECORDING);
  const { entries } = steps.at(-1) as { entries: number };
  const fork = await laboratory.run({ ...RECORDING, fork: `${entries} command 0` });
  const told = fork.steps.flatMap(({ lines }) => lines).filter((line) => line === "fault: link to 3 cut");
  expect(told).toHaveLength(3);
  const later = fork.drawing.messages.filter(({ sent }) => (sent ?? 0) >= steps.length);
  expect(later.filter(({ to }) => to === 3).length).toBeGreaterThan(0);
  for (const { to, lost } of later) expect(lost).toBe(to === 3 ? "cut" : null);
  expect(fork.drawing.axes.time.networks.at(-1)?.words).toBe("split: 0, 1, 2 | 3");
  const healed = await laboratory.run({ ...RECORDING, fork: `${entries} heal 0` });
  expect(healed.drawing.axes.time.networks.at(-1)?.words).toBe("");
});

test("keeps the spans of a saved simulated run", async () => {
  const laboratory = new TestedLaboratory();
  const { steps } = await laboratory.run({ protocol: "bully", nodes: "3" });
  const fork = [10, 20, 30].map((ms) => (steps.findLast(({ at }) => at < ms) ?? steps[0])?.entries);
  const words = { protocol: "bully", nodes: "3", fork: `${fork[0]} isolate 0;${fork[1]} slow 1 2;${fork[2]} heal 0` };
  const made = await networksOf(laboratory, words);
  await laboratory.open("saved.jsonl", await laboratory.export());
  const again = await networksOf(laboratory, { recording: "saved.jsonl", protocol: "bully" });
  expect(made).toEqual(["split: 0 | 1, 2", "split: 0 | 1, 2; 1 – 2: 100 ms of delay", "1 – 2: 100 ms of delay"]);
  expect(again).toEqual(made);
});
