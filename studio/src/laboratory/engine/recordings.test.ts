/** Tests runs as files, and the limits of links. */
import { existsSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../../../src/core/errors.ts";
import { checkedWithin, replayed } from "../../../../src/experiment/recording.ts";
import { scenarioOf } from "../../../../src/experiment/simulate.ts";
import { forkTreeOf } from "../forking.ts";
import { nodesIn, offeredNodes } from "../option-values.ts";
import { formOf } from "./form.ts";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import { MAX_NODES } from "./limits.ts";
import { actProblem, forksText, hashOf, MAX_FORKS, MAX_LINK, pageProblem, placeOf, type Words } from "./recipe.ts";
import { opened, partOf } from "./recordings.ts";
import { experimentOf, runOf } from "./runs.ts";
import { scenarioText } from "./scenarios.ts";
import { shown } from "./show.ts";

const laboratory = new TestedLaboratory();
const NO_SOURCES = {
  scenario: () => Promise.reject(new Error("no scenario")),
  counterexample: () => Promise.resolve(null),
};

describe("a trace file", () => {
  it("restores the run in another browser, and can be forked", async () => {
    const run = await laboratory.run({ protocol: "bully", nodes: "4", fork: "12 crash 3" });
    const last = await laboratory.look(run.steps.length - 1);
    const text = await laboratory.export();

    const stranger = new TestedLaboratory();
    expect(await stranger.open("saved.jsonl", text)).toEqual({ protocol: "bully" });
    const again = await stranger.run({ recording: "saved.jsonl", protocol: "bully" });
    expect(again.steps.map(({ at, lines }) => ({ at, lines }))).toEqual(
      run.steps.map(({ at, lines }) => ({ at, lines })),
    );
    expect(await stranger.look(again.steps.length - 1)).toEqual(last);
    expect(await stranger.export()).toBe(text);

    const forked = await stranger.run({ recording: "saved.jsonl", protocol: "bully", fork: "4 crash 2" });
    expect(forked.steps.flatMap(({ lines }) => lines)).toContain("crashes");
    expect(forked.forks).toHaveLength(1);
  });

  it("counts time from the first event of a live cluster", async () => {
    const run = await laboratory.run({ protocol: "bully", nodes: "4" });
    const [header = "", ...lines] = (await laboratory.export()).trimEnd().split("\n");
    const BOOT_MS = 1_795_454_922_546;
    const live = lines.map((line) => JSON.stringify({ ...JSON.parse(line), at: JSON.parse(line).at + BOOT_MS }));
    const written = header.replace('"simulator"', '"cluster"').replace('"model"', '"node"');
    await laboratory.open("live.jsonl", [written, ...live, ""].join("\n"));
    const recorded = await laboratory.run({ recording: "live.jsonl" });
    expect(recorded.steps.map(({ at }) => at)).toEqual(run.steps.map(({ at }) => at));
  });

  it("is rejected if invalid, in one sentence with file and line", async () => {
    await laboratory.run({ protocol: "bully", nodes: "3" });
    const text = await laboratory.export();
    const [header = "", ...entries] = text.split("\n");
    const bad: readonly (readonly [string, RegExp])[] = [
      ["", /^bad\.jsonl: line 1: .*empty file/],
      ["no json", /^bad\.jsonl: line 1: /],
      [header, /^bad\.jsonl: expected events/],
      [header.replace('"bully"', '"bullies"') + text.slice(header.length), /^bad\.jsonl: .*bullies/],
      [[header, entries[0], "{}", ...entries].join("\n"), /^bad\.jsonl: line 3: /],
    ];
    for (const [content, sentence] of bad)
      await expect(laboratory.open("bad.jsonl", content)).rejects.toThrow(sentence);
  });

  it("with too many entries is opened in numbered parts", async () => {
    const { entries: total } = await laboratory.run({ protocol: "epoch-bully", nodes: "3", until: "60000" });
    const reported: number[] = [];
    const text = await laboratory.export();
    const whole = opened("idle.jsonl", text, 0, (entries) => reported.push(entries));
    expect(reported).toEqual(Array.from({ length: Math.floor(total / 10_000) }, (_, place) => 10_000 * (place + 1)));
    expect(partOf(whole, "", total)).toEqual({ trace: whole, part: null, omissions: [] });

    const most = Math.ceil(total / 2.5);
    const parts = ["1", "2", "3"].map((part) => partOf(whole, part, most));
    expect(parts.flatMap(({ trace }) => trace.entries)).toEqual(whole.entries);
    expect(parts.map(({ part }) => part)).toEqual([1, 2, 3].map((number) => ({ number, of: 3 })));
    const figure = (count: number) => count.toLocaleString("en");
    expect(parts[0]?.omissions).toEqual([
      `Entries 1 to ${figure(most)} of ${figure(total)} are shown, from minute 0.0 to 0.4.`,
    ]);
    expect(parts[2]?.omissions[0]).toMatch(
      `Entries ${figure(2 * most + 1)} to ${figure(total)} of ${figure(total)} are shown, from minute 0.8 to 1.0. The states`,
    );
    expect(partOf(whole, "", most)).toEqual(parts[0]);
    expect(() => partOf(whole, "4", most)).toThrow("expected a part of the recording from 1 to 3, got 4");
    expect(() => partOf(whole, "x", most)).toThrow("from 1 to 3, got x");
  });

  it("can begin in the middle of a run, with unknown states", async () => {
    await laboratory.run({ protocol: "epoch-bully", nodes: "3", until: "20000", fork: "1200 crash 2" });
    const whole = opened("crash.jsonl", await laboratory.export());
    const last = partOf(whole, "2", 1_100);
    const recording = () => last;
    const run = await runOf({ recording: "crash.jsonl", part: "2" }, { ...NO_SOURCES, recording });
    const drawn = shown(run);
    expect(drawn).toMatchObject({ part: { number: 2 }, omissions: last.omissions });
    expect(drawn.steps.flatMap(({ lines }) => lines)).toContain("crashes");
    expect(new Set(drawn.properties.map(({ verdict, why }) => `${verdict}: ${why}`))).toEqual(
      new Set(["unknown: not every state is known"]),
    );
    const forked = runOf({ recording: "crash.jsonl", part: "2", fork: "40 crash 1" }, { ...NO_SOURCES, recording });
    await expect(forked).rejects.toThrow(/expected every state at that point/);
  });

  it("whose properties take too long to check reports how far they were checked", async () => {
    await laboratory.run({ protocol: "epoch-bully", nodes: "3", until: "30000" });
    const trace = opened("slow.jsonl", await laboratory.export());
    const { length } = trace.entries;
    const { findings } = checkedWithin(trace, (count) => count < 2_000);
    expect(new Set(findings.map(({ verdict, why }) => `${verdict}: ${why}`))).toEqual(
      new Set([`unknown: only the first 2000 of ${length} entries were checked`]),
    );
    expect(checkedWithin(trace, () => true).findings).toEqual(replayed(trace, undefined).findings);
  });

  it("that is too large is opened at its beginning, with instructions for its end", async () => {
    await laboratory.run({ protocol: "bully", nodes: "4" });
    const text = await laboratory.export();
    const beginning = opened("large.jsonl", text.slice(0, 5_000), 3_000_000, () => {}, 4_000);
    expect(beginning.entries.length).toBeGreaterThan(10);
    expect(beginning.entries.length).toBeLessThan(opened("large.jsonl", text).entries.length);
    expect(partOf(beginning, "").omissions).toEqual([
      expect.stringMatching(/^Only the first 0 MB of the file's 3 MB are opened\. To open its end, run: .*tail -n/),
    ]);
  });

  it("that ends within a line is opened up to that line, with a note", async () => {
    await laboratory.run({ protocol: "bully", nodes: "4" });
    const text = await laboratory.export();
    await laboratory.open("torn.jsonl", text.slice(0, -30));
    const torn = await laboratory.run({ recording: "torn.jsonl" });
    expect(torn.omissions).toEqual([
      "The file ends within a line, as if it were still being written. The rest is shown.",
    ]);
    await laboratory.open("whole.jsonl", text);
    const whole = await laboratory.run({ recording: "whole.jsonl" });
    expect(whole.omissions).toEqual([]);
    expect(torn.entries).toBe(whole.entries - 1);
  });

  it("of 23 minutes with 250,000 entries is opened as a whole", { tags: ["long"] }, async () => {
    const { entries, steps } = await laboratory.run({
      protocol: "epoch-bully",
      nodes: "5",
      until: String(23 * 60_000),
    });
    expect(entries).toBeGreaterThan(240_000);
    await laboratory.open("idle.jsonl", await laboratory.export());
    const run = await laboratory.run({ recording: "idle.jsonl" });
    expect(run).toMatchObject({ entries, part: null, omissions: [], beyond: 0 });
    expect(run.steps.map(({ lines }) => lines)).toEqual(steps.map(({ lines }) => lines));
    expect((await laboratory.look(run.steps.length - 1)).headline).toBe("Epoch 1: node 4 leads.");
  });

  it("is not contained in a link", async () => {
    const words = { recording: "never.jsonl", protocol: "bully" };
    await expect(laboratory.run(words)).rejects.toThrow(/never\.jsonl to be opened here first/);
  });
});

describe("a link", () => {
  it("with an unknown page or act lists the known ones", async () => {
    for (const hash of ["", "#", "#/", "#/gallery", "#/run?protocol=bully&nodes=3", "#/tour?tour=silence"])
      expect(pageProblem(hash)).toBe("");
    expect(pageProblem("#/fork?protocol=bully")).toBe(
      "No page is called “fork”. The pages are gallery, run, check, compare, tour, live and embed.",
    );
    expect(pageProblem("#/run/bully")).toMatch(/^No page is called “\/run\/bully”/);
    await expect(laboratory.run({ protocol: "bully", fork: "12 explode 3" })).rejects.toThrow(
      /^No action is called “explode”\. The actions are crash, start, .* and heal\.$/,
    );
    await expect(laboratory.run({ protocol: "bully", fork: "12 crash 3;crash 2" })).rejects.toThrow(
      "expected actions such as “57 crash 2” in the link, got “crash 2”",
    );
    const branches = "12 crash 3|20 explode 1";
    await expect(laboratory.run({ protocol: "bully", branches })).rejects.toThrow(/^No action is called “explode”/);
    expect(() => scenarioText("bully-z")).toThrow("No scenario is called “bully-z”. The gallery lists the scenarios.");
  });

  it("with any numbers makes a run, or names the invalid word", async () => {
    await expect(laboratory.run({ protocol: "raft", nodes: "1000000000" })).rejects.toThrow(
      'expected --nodes to be a whole number from 1 to 100 in the laboratory, got "1000000000"',
    );
    const number = fc.oneof(
      fc.constantFrom(
        "",
        "-1",
        "1e9",
        "1000000000",
        "999999999999999",
        "Infinity",
        "NaN",
        "0x10",
        "1,1",
        "0.5",
        "all",
        "{}",
      ),
      fc.integer({ min: -2, max: 10 ** 9 }).map(String),
      fc.string({ maxLength: 12 }),
    );
    const form = formOf("bully", "");
    const numeric = [...form.run, ...form.check].map(({ word }) => word);
    fc.assert(
      fc.property(
        fc.constantFrom("bully", "raft", "ricart-agrawala", "isis", "two-phase-commit"),
        fc.dictionary(fc.constantFrom(...numeric, "fork", "branches", "at", "part", "with"), number, { maxKeys: 4 }),
        (protocol, words) => {
          const { words: read } = placeOf(hashOf({ page: "run", words: { ...words, protocol } }));
          expect(offeredNodes(read.nodes ?? "5").length).toBeLessThanOrEqual(MAX_NODES);
          forkTreeOf(read);
          expect(new Set(nodesIn(read.crash ?? "")).size).toBe(nodesIn(read.crash ?? "").length);
          const problem = actProblem(read);
          try {
            if (problem !== "") throw new UsageError("bad-argument", problem);
            scenarioOf(experimentOf(read));
          } catch (error) {
            expect(error).toBeInstanceOf(UsageError);
            expect((error as Error).message).not.toBe("");
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("whose run takes too long is rejected with a way to shorten it", { tags: ["long"] }, async () => {
    await expect(laboratory.run({ protocol: "heartbeat", nodes: "40", until: "999999999" })).rejects.toThrow(
      /^expected a run of at most 500000 events, got more: end it earlier with --until/,
    );
  });

  it("has a limited number of acts and characters", async () => {
    const fork = { entries: 1, act: "crash", node: 0, what: "" } as const;
    const words = { protocol: "bully", fork: forksText(Array(MAX_FORKS + 1).fill(fork)) };
    await expect(laboratory.run(words)).rejects.toThrow(`at most ${MAX_FORKS} actions on a run, got ${MAX_FORKS + 1}`);
    await expect(laboratory.run({ protocol: "bully", options: "x".repeat(MAX_LINK) })).rejects.toThrow(
      `a link of at most ${MAX_LINK} characters`,
    );
  });

  it("is limited including its cursor", async () => {
    const bare = { protocol: "bully", nodes: "2", branches: "" };
    const room = MAX_LINK - hashOf({ page: "run", words: { ...bare, branches: "9" } }).length;
    const isMade = (words: Words) =>
      laboratory.run(words).then(
        () => true,
        (error: unknown) => !String(error).includes("expected a link"),
      );
    const made: boolean[] = [];
    for (let left = 0; left < 12; left++) {
      const words = { ...bare, branches: "9".repeat(1 + room - left) };
      const [alone, withCursor] = [await isMade(words), await isMade({ ...words, at: "99999" })];
      expect(withCursor, `${left} characters below the limit`).toBe(alone);
      made.push(alone);
    }
    expect(new Set(made)).toEqual(new Set([true, false]));
  });

  it("in the docs leads to existing scenarios", () => {
    const root = new URL("../../../../", import.meta.url);
    const links = readFileSync(new URL("docs/learn/embed.md", root), "utf8").match(/#\/[a-z]+\?[^\s`"]+/g) ?? [];
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) {
      const { scenario = "" } = placeOf(link).words;
      expect(existsSync(new URL(`scenarios/${scenario}.yaml`, root)), link).toBe(true);
    }
  });
});
