/** An act at the cursor creates a new run, which is the same up to the cursor and then has the act's effect. */
import { describe, expect, test } from "vitest";
import { readTrace } from "../../../../src/trace/file.ts";
import type { ShownRun } from "./answers.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { ActKind } from "./recipe.ts";

const laboratory = new TestedLaboratory();

/** Elections (one of them on a ring), locks, multicasts, consensus and a log. */
const cases = [
  ["bully", 4],
  ["ricart-agrawala", 3],
  ["isis", 3],
  ["paxos", 3],
  ["raft", 3],
  ["chang-roberts", 4],
] as const;

test("has each message in transit once after several acts at one moment, as in the run without them", async () => {
  // The last two are at the same time. Node 3 requests votes after each of them.
  const fork = "22 cut 4 1;24 timer 4 log.election;35 slow 4 3;38 crash 0;46 isolate 4";
  const { steps } = await laboratory.run({ protocol: "raft", nodes: "5", fork });
  const sent = readTrace(await laboratory.export()).entries.flatMap((each) => (each.kind === "send" ? [each.id] : []));
  expect(sent.filter((id, place) => sent.indexOf(id) < place)).toEqual([]);
  const isVoting = (line: string): boolean => line.startsWith("sends log.requestVote");
  const { inFlight } = await laboratory.look(steps.findIndex(({ lines }) => lines.some(isVoting)));
  const requests = inFlight.filter(({ name }) => name.endsWith("requestVote")).map(({ to }) => to);
  expect(new Set(requests).size).toBe(requests.length);
});

describe("an act that is impossible at its entry is reported, and the run is shown without it", () => {
  const words = { protocol: "bully", nodes: "4" };

  test.each([
    ["12 lose 3 none", "no message “none” is in transit at that step"],
    ["12 duplicate 3 none", "no message “none” is in transit at that step"],
    ["12 delay 3 none", "no message “none” is in transit at that step"],
    ["12 crash 2;15 crash 2", "node 2 is down at that step"],
    ["12 crash 2;15 pause 2", "node 2 is down at that step"],
    ["12 crash 2;15 command 2", "node 2 is down at that step"],
    ["12 crash 2;15 timer 2 answer", "node 2 is down at that step"],
    ["12 start 2", "node 2 is not down at that step"],
    ["12 resume 2", "node 2 is not paused at that step"],
    ["12 pause 2;15 pause 2", "node 2 is already paused at that step"],
    ["12 timer 2 nap", "node 2 has no timer “nap” at that step"],
    ["12 cut 2 2", "a link has two ends, and both are node 2"],
    ["99999 crash 2", /^the run has \d+ entries$/],
  ])("%s", async (fork, problem) => {
    const acts = fork.split(";");
    const { omissions, steps } = await laboratory.run({ ...words, fork });
    const [, act, why] = /^“(.*)” has no effect: (.*)\.$/.exec(omissions.join("\n")) ?? [];
    expect([act, why]).toEqual([acts.at(-1), typeof problem === "string" ? problem : expect.stringMatching(problem)]);
    const without = await laboratory.run({ ...words, fork: acts.slice(0, -1).join(";") });
    expect(without.omissions).toEqual([]);
    const lines = (run: Pick<ShownRun, "steps">) => run.steps.slice(0, 20).map((step) => step.lines);
    expect(lines({ steps })).toEqual(lines(without));
  });

  test("does not report possible acts, even if a node starts at that moment, and reports each sentence once", async () => {
    for (const fork of ["0 crash 3", "12 pause 2;15 resume 2", "12 crash 2;15 start 2;15 heal 0"])
      expect((await laboratory.run({ ...words, fork })).omissions).toEqual([]);
    const twice = await laboratory.run({ ...words, fork: "12 resume 2;12 resume 2" });
    expect(twice.omissions).toHaveLength(1);
  });

  test("rejects acts that are not in the order of their entries, since the earlier one would drop the later", async () => {
    await expect(laboratory.run({ ...words, fork: "20 crash 2;12 crash 3" })).rejects.toThrow(
      "expected the actions in the link in the order of their entries, got “12 crash 3” after a later action",
    );
  });
});

describe.each(cases)("%s, %i nodes", (protocol, nodes) => {
  const words = { protocol, nodes: String(nodes) };

  /** Forks a run after its first message was sent. */
  async function forked(act: ActKind, what: (flight: { id: string; to: number }) => string, node = 1) {
    const run = await laboratory.run(words);
    const started = run.steps.findLastIndex(({ lines }) => lines.includes("starts"));
    const step = run.drawing.messages.find(({ sent }) => (sent ?? 0) >= started)?.sent ?? 0;
    const [flight] = (await laboratory.look(step)).inFlight;
    if (flight === undefined) throw new Error("expected a message on its way");
    const { entries } = run.steps[step] as { entries: number };
    const fork = await laboratory.run({ ...words, fork: `${entries} ${act} ${node} ${what(flight)}`.trim() });
    const same = act === "lose" ? step : step + 1; // A loss is part of the step that sent the message.
    expect(fork.steps.slice(0, same)).toEqual(run.steps.slice(0, same));
    const later = fork.steps.slice(step + 1);
    return { fork, flight, later, lines: later.flatMap(({ lines }) => lines), at: run.steps[step]?.at ?? 0 };
  }

  test("keeps a paused node idle until it is resumed, under any other acts", async () => {
    const { fork, later } = await forked("pause", () => "");
    expect(later.filter(({ node }) => node === 1).flatMap(({ lines }) => lines)).toEqual([
      expect.stringMatching(/pause/),
    ]);
    const last = fork.entries;
    const crashed = await laboratory.run({ ...words, fork: `${fork.words.fork};${last} crash 2` });
    expect((await laboratory.look(crashed.steps.length - 1)).nodes[1]?.condition).toBe("paused");
    const resumed = await laboratory.run({ ...words, fork: `${fork.words.fork};${last} resume 1` });
    expect((await laboratory.look(resumed.steps.length - 1)).nodes[1]?.condition).toBe("up");
    const turns = resumed.steps
      .flatMap(({ node, lines }) => (node === 1 ? lines : []))
      .filter((line) => /^(pauses|resumes|goes on)/.test(line));
    expect(turns).toHaveLength(2);
  });

  test("keeps a split through further acts, until it is healed", async () => {
    const { fork } = await forked("isolate", () => "");
    expect(fork.drawing.axes.time.networks.at(-1)?.words).toMatch(/^split/);
    const again = await laboratory.run({ ...words, fork: `${fork.words.fork};${fork.entries} pause 0` });
    expect(again.drawing.axes.time.networks).toHaveLength(1);
    const healed = await laboratory.run({ ...words, fork: `${fork.words.fork};${fork.entries} heal 0` });
    expect(healed.drawing.axes.time.networks.at(-1)?.words).toBe("");
  });

  test("delivers a delayed message 100 ms later", async () => {
    const { fork, flight, at } = await forked("delay", ({ id }) => id);
    const delayed = fork.drawing.messages.find(({ id }) => id.startsWith(`${flight.id} `));
    const arrival = fork.steps[delayed?.ended ?? -1];
    expect(arrival?.at).toBeCloseTo(at + 100, 6);
  });

  /** Expects that the act has no effect because no message has this id. */
  const leftAlone = (fork: ShownRun, entries: number) =>
    laboratory.run({ ...words, fork: `${fork.words.fork};${entries} delay 0 none` });
  const happenings = ({ steps }: ShownRun) => steps.map(({ at, node, lines }) => [at, node, ...lines].join(" "));

  test.each(["lose", "duplicate", "delay"] as const)(
    "keeps the effect of %s on a message under any later acts",
    async (act) => {
      const { fork, later } = await forked(act, ({ id }) => id);
      for (const { entries } of [...fork.forks, ...later.slice(0, 3)]) {
        const again = await leftAlone(fork, entries);
        expect(happenings(again).slice(0, fork.steps.length)).toEqual(happenings(fork));
      }
    },
  );

  test("shows a lost message as lost, but not its duplicate", async () => {
    const { fork, flight } = await forked("lose", ({ id }) => id);
    const ways = ({ drawing }: ShownRun) => drawing.messages.filter(({ id }) => id.startsWith(`${flight.id} `));
    expect(ways(fork).map(({ lost }) => lost)).toEqual(["dropped"]);
    const double = await forked("duplicate", ({ id }) => id);
    expect(ways(double.fork).map(({ lost }) => lost)).toEqual([null, null]);
    const [{ entries = 0 } = {}] = fork.forks;
    const one = await laboratory.run({
      ...words,
      fork: `${double.fork.words.fork};${entries} lose ${flight.to} ${flight.id}`,
    });
    expect(ways(one).map(({ lost }) => lost)).toEqual(["dropped", null]);
  });

  test("rejects nodes that are not in the run", async () => {
    await expect(forked("cut", () => "17")).rejects.toThrow(/expected nodes of the run/);
    await expect(forked("crash", () => "", 17)).rejects.toThrow(/expected nodes of the run/);
  });

  test("sends a node the main command of its family", async () => {
    const { fork, lines } = await forked("command", () => "", 0);
    const asked = lines.filter((line) => /command|asked|told|calls?|requests?|sends?|proposes?/i.test(line));
    expect(asked.length > 0).toBe(fork.verb !== null);
  });
});

test("loses messages across a cut, so that no node enters before it is healed", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3", request: "0" };
  const run = await laboratory.run(words);
  const asked = run.drawing.messages[0]?.sent ?? 0;
  const before = run.steps[asked - 1]?.entries ?? 0;
  const cut = await laboratory.run({ ...words, fork: `${before} cut 0 1;${before} command 0` });
  const across = ({ from, to }: { from: number; to: number }) => from + to === 1;
  expect(cut.drawing.messages.filter(across).map(({ lost }) => lost)).toEqual(["cut"]);
  expect((await laboratory.look(cut.steps.length - 1)).headline).toBe("No node is inside; 0 waits.");
  const healed = await laboratory.run({ ...words, fork: `${before} cut 0 1;${before} heal 0;${before} command 0` });
  expect(healed.drawing.messages.every(({ lost }) => lost === null)).toBe(true);
});

test("delays a slow link by 100 ms in both directions, and leaves the others unchanged", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3", request: "0" };
  const run = await laboratory.run(words);
  const before = run.steps[(run.drawing.messages[0]?.sent ?? 0) - 1]?.entries ?? 0;
  const slow = await laboratory.run({ ...words, fork: `${before} slow 0 1` });
  const took = slow.drawing.messages.map(({ from, to, sent, ended }) => [
    from + to,
    (slow.steps[ended ?? 0]?.at ?? 0) - (slow.steps[sent ?? 0]?.at ?? 0),
  ]);
  expect(took.filter(([link]) => link === 1).map(([, ms]) => ms)).toEqual([100, 100]);
  expect(took.every(([link, ms]) => link === 1 || (ms ?? 0) < 100)).toBe(true);
});

test("lets all nodes start after an act before their start", async () => {
  const words = { protocol: "bully", nodes: "4" };
  const startsIn = ({ steps }: ShownRun) => steps.flatMap(({ node, lines }) => (lines[0] === "starts" ? [node] : []));
  const first = await laboratory.run({ ...words, fork: "1 pause 0" });
  expect(startsIn(first)).toEqual([0, 1, 2, 3]);
  const recovered = await laboratory.run({ ...words, fork: "0 start 2" });
  expect(startsIn(recovered).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  const crashed = await laboratory.run({ ...words, fork: "2 crash 3" });
  expect((await laboratory.look(crashed.steps.length - 1)).nodes.map(({ condition }) => condition)).toEqual([
    "up",
    "up",
    "up",
    "down",
  ]);
});

test("lets nodes start that send messages at the start", async () => {
  const words = { protocol: "view-synchrony", nodes: "3" };
  const run = await laboratory.run(words);
  const fork = await laboratory.run({ ...words, fork: `${run.steps[0]?.entries} pause 0` });
  const look = await laboratory.look(fork.steps.length - 1);
  expect(look.nodes.map(({ condition }) => condition)).toEqual(["paused", "up", "up"]);
});

test("keeps a fired timer under any later acts of the same moment", async () => {
  const words = { protocol: "bully", nodes: "4" };
  const run = await laboratory.run(words);
  const { entries = 0 } = run.steps[run.drawing.messages[0]?.sent ?? 0] ?? {};
  const fired = await laboratory.run({ ...words, fork: `${entries} timer 0 answer;${entries} pause 3` });
  const at = ({ lines }: ShownRun["steps"][number]) => lines[0] === "times out: answer";
  expect(fired.steps.find(at)).toMatchObject({ node: 0, at: 0 });
});
