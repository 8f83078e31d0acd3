/** Tests that a fork differs from the original run only by its act: random draws stay the same. */
import { describe, expect, test } from "vitest";
import { readTrace } from "../../../../src/trace/file.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import type { Words } from "./recipe.ts";

const laboratory = new TestedLaboratory();

/**
 * Returns the events up to a moment, in order. Messages have different ids in a fork, so they are numbered in order of
 * appearance.
 */
async function happenings(
  words: Words,
): Promise<{ readonly all: readonly string[]; readonly times: readonly number[] }> {
  await laboratory.run(words);
  const { entries } = readTrace(await laboratory.export());
  const numbers = new Map<string, number>();
  const numbered = (id: string): number => {
    numbers.set(id, numbers.get(id) ?? numbers.size);
    return numbers.get(id) as number;
  };
  return {
    all: entries.map((entry) => JSON.stringify("id" in entry ? { ...entry, id: numbered(entry.id) } : entry)),
    times: entries.map(({ at }) => at),
  };
}

/** At least one protocol of each family, with random delays, losses or timeouts. */
const cases = [
  { protocol: "heartbeat", nodes: "4", delay: "1..40", until: "900" },
  { protocol: "bully", nodes: "4", delay: "1..100", crash: "3" },
  { protocol: "epoch-bully", nodes: "4", delay: "1..100", until: "900" },
  { protocol: "ricart-agrawala", nodes: "4", delay: "normal:40,10", reorder: "on" },
  { protocol: "token-ring", nodes: "4", delay: "1..100", until: "900" },
  { protocol: "isis", nodes: "4", delay: "1..100", duplicate: "0.3" },
  { protocol: "raft", nodes: "5", delay: "1..60", loss: "0.2", until: "900" },
  { protocol: "cheap-paxos", nodes: "4", delay: "1..100", until: "900" },
  { protocol: "pbft", nodes: "4", delay: "1..100", processing: "1..5" },
  { protocol: "two-phase-commit", nodes: "4", delay: "1..100" },
] as const;

describe.each(cases)("$protocol", (words) => {
  test.each([0.2, 0.5, 0.8])("continues unchanged if the act after %d of its steps has no effect", async (share) => {
    const { steps } = await laboratory.run(words);
    const { entries = 0 } = steps[Math.floor(steps.length * share)] ?? {};
    const [run, fork] = [await happenings(words), await happenings({ ...words, fork: `${entries} heal 0` })];
    const until = Math.min(run.times.at(-1) ?? 0, fork.times.at(-1) ?? 0);
    const count = run.times.filter((at) => at < until).length;
    expect(count).toBeGreaterThanOrEqual(entries);
    expect(fork.all.filter((line) => !line.includes('"what":"all links mended"')).slice(0, count)).toEqual(
      run.all.slice(0, count),
    );
  });
});

test("keeps the timeouts and delays of all nodes that a crash does not affect", async () => {
  const words = { protocol: "heartbeat", nodes: "5", delay: "1..60", until: "900" };
  const { steps } = await laboratory.run(words);
  const { entries = 0, at: crashedAt = 0 } = steps[steps.length >> 1] ?? {};
  const fork = `${entries} crash 4`;
  const others = ({ all }: Awaited<ReturnType<typeof happenings>>) =>
    all
      .map((line) => JSON.parse(line))
      .filter(({ at, node, to = node, from = node }) => at < 900 && ![node, to, from].includes(4))
      .filter(({ kind }) => kind === "receive" || kind === "timeout")
      .map(({ at, node, kind, timer = "" }) => `${at} ${node} ${kind} ${timer}`);
  const [left, gone] = [others(await happenings(words)), others(await happenings({ ...words, fork }))];
  const isOwn = (line: string) => !/ (suspect|timeout-4|.*4)$/.test(line);
  expect(left.length).toBeGreaterThan(50);
  expect(crashedAt).toBeLessThan(900);
  expect(gone.filter(isOwn)).toEqual(left.filter(isOwn));
});

test("keeps the draws in a fork of a fork", async () => {
  const words = { protocol: "raft", nodes: "3", delay: "1..60", until: "900" };
  const { steps } = await laboratory.run(words);
  const at = (share: number) => steps[Math.floor(steps.length * share)]?.entries ?? 0;
  const once = await happenings({ ...words, fork: `${at(0.4)} crash 0` });
  const twice = await happenings({ ...words, fork: `${at(0.4)} crash 0;${at(0.8)} delay 0 none` });
  const count = once.times.filter((time) => time < (twice.times.at(-1) ?? 0)).length;
  expect(count).toBeGreaterThan(at(0.8));
  expect(twice.all.slice(0, count)).toEqual(once.all.slice(0, count));
});
