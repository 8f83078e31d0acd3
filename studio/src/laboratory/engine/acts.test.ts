/** What is done at the cursor makes another run: the same up to there, and from there on what was asked for. */
import { describe, expect, test } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { ActKind } from "./recipe.ts";

const laboratory = new TestedLaboratory();

/** Elections, one of them on a ring; locks, multicasts, consensus and a log. */
const cases = [
  ["bully", 4],
  ["ricart-agrawala", 3],
  ["isis", 3],
  ["paxos", 3],
  ["raft", 3],
  ["chang-roberts", 4],
] as const;

describe.each(cases)("%s, %i nodes", (protocol, nodes) => {
  const words = { protocol, nodes: String(nodes) };

  /** After the first message was sent. */
  async function forked(act: ActKind, what: (flight: { id: string; to: number }) => string, node = 1) {
    const run = await laboratory.run(words);
    const started = run.steps.findLastIndex(({ lines }) => lines.includes("starts"));
    const step = run.drawing.messages.find(({ sent }) => (sent ?? 0) >= started)?.sent ?? 0;
    const [flight] = (await laboratory.look(step)).inFlight;
    if (flight === undefined) throw new Error("expected a message on its way");
    const { entries } = run.steps[step] as { entries: number };
    const fork = await laboratory.run({ ...words, fork: `${entries} ${act} ${node} ${what(flight)}`.trim() });
    expect(fork.steps.slice(0, step + 1)).toEqual(run.steps.slice(0, step + 1));
    const later = fork.steps.slice(step + 1);
    return { fork, flight, later, lines: later.flatMap(({ lines }) => lines), at: run.steps[step]?.at ?? 0 };
  }

  test("a node pauses and does nothing until it is resumed, whatever else is done", async () => {
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

  test("a split lasts through further acts, until it is healed", async () => {
    const { fork } = await forked("isolate", () => "");
    expect(fork.drawing.axes.time.networks.at(-1)?.words).toMatch(/^split/);
    const again = await laboratory.run({ ...words, fork: `${fork.words.fork};${fork.entries} pause 0` });
    expect(again.drawing.axes.time.networks).toHaveLength(1);
    const healed = await laboratory.run({ ...words, fork: `${fork.words.fork};${fork.entries} heal 0` });
    expect(healed.drawing.axes.time.networks.at(-1)?.words).toBe("");
  });

  test("a delayed message comes 100 ms later", async () => {
    const { fork, flight, at } = await forked("delay", ({ id }) => id);
    const delayed = fork.drawing.messages.find(({ id }) => id.startsWith(`${flight.id} `));
    const arrival = fork.steps[delayed?.ended ?? -1];
    expect(arrival?.at).toBeCloseTo(at + 100, 6);
  });

  test("nodes that are none of the run are refused", async () => {
    await expect(forked("cut", () => "17")).rejects.toThrow(/expected nodes of the run/);
    await expect(forked("crash", () => "", 17)).rejects.toThrow(/expected nodes of the run/);
  });

  test("a node is asked to do the work of its family", async () => {
    const { fork, lines } = await forked("command", () => "", 0);
    const asked = lines.filter((line) => /command|asked|told|calls?|requests?|sends?|proposes?/i.test(line));
    expect(asked.length > 0).toBe(fork.verb !== null);
  });
});

test("what crosses a cut is lost: nobody enters before it is healed", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3", request: "0" };
  const run = await laboratory.run(words);
  const asked = run.drawing.messages[0]?.sent ?? 0;
  const before = run.steps[asked - 1]?.entries ?? 0;
  const cut = await laboratory.run({ ...words, fork: `${before} cut 0 1;${before} command 0` });
  const across = ({ from, to }: { from: number; to: number }) => from + to === 1;
  expect(cut.drawing.messages.filter(across).map(({ lost }) => lost)).toEqual(["cut"]);
  expect((await laboratory.look(cut.steps.length - 1)).headline).toBe("Nobody is inside; 0 waits.");
  const healed = await laboratory.run({ ...words, fork: `${before} cut 0 1;${before} heal 0;${before} command 0` });
  expect(healed.drawing.messages.every(({ lost }) => lost === null)).toBe(true);
});

test("a slow link takes 100 ms in both directions, and the others what they took", async () => {
  const words = { protocol: "ricart-agrawala", nodes: "3", request: "0" };
  const run = await laboratory.run(words);
  const before = run.steps[(run.drawing.messages[0]?.sent ?? 0) - 1]?.entries ?? 0;
  const slow = await laboratory.run({ ...words, fork: `${before} slow 0 1;${before} command 0` });
  const took = slow.drawing.messages.map(({ from, to, sent, ended }) => [
    from + to,
    (slow.steps[ended ?? 0]?.at ?? 0) - (slow.steps[sent ?? 0]?.at ?? 0),
  ]);
  expect(took.filter(([link]) => link === 1).map(([, ms]) => ms)).toEqual([100, 100]);
  expect(took.every(([link, ms]) => link === 1 || (ms ?? 0) < 100)).toBe(true);
});
