/** Runs as files, and the limits of what a link holds. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { TestedLaboratory } from "./laboratory-under-test.ts";
import { MAX_BYTES } from "./limits.ts";
import { forksText, hashOf, MAX_FORKS, MAX_LINK, placeOf, type Words } from "./recipe.ts";

const laboratory = new TestedLaboratory();

describe("a trace file", () => {
  it("is the same run again, in another browser, and can be forked", async () => {
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

  it("of a live cluster counts time from its first event", async () => {
    const run = await laboratory.run({ protocol: "bully", nodes: "4" });
    const [header = "", ...lines] = (await laboratory.export()).trimEnd().split("\n");
    const BOOT_MS = 1_795_454_922_546;
    const live = lines.map((line) => JSON.stringify({ ...JSON.parse(line), at: JSON.parse(line).at + BOOT_MS }));
    const written = header.replace('"simulator"', '"cluster"').replace('"model"', '"node"');
    await laboratory.open("live.jsonl", [written, ...live, ""].join("\n"));
    const recorded = await laboratory.run({ recording: "live.jsonl" });
    expect(recorded.steps.map(({ at }) => at)).toEqual(run.steps.map(({ at }) => at));
  });

  it("that is not one is refused in one sentence that names file and line", async () => {
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

  it("that is too long is refused before anything is made of it", async () => {
    await expect(laboratory.open("long.jsonl", "x".repeat(MAX_BYTES + 1))).rejects.toThrow(
      `long.jsonl: expected at most ${MAX_BYTES} bytes, got ${MAX_BYTES + 1}`,
    );
  });

  it("is not in a link", async () => {
    const words = { recording: "never.jsonl", protocol: "bully" };
    await expect(laboratory.run(words)).rejects.toThrow(/never\.jsonl to be opened here first/);
  });
});

describe("a link", () => {
  it("holds so many acts, and so many characters", async () => {
    const fork = { entries: 1, act: "crash", node: 0, what: "" } as const;
    const words = { protocol: "bully", fork: forksText(Array(MAX_FORKS + 1).fill(fork)) };
    await expect(laboratory.run(words)).rejects.toThrow(`at most ${MAX_FORKS} acts upon a run, got ${MAX_FORKS + 1}`);
    await expect(laboratory.run({ protocol: "bully", options: "x".repeat(MAX_LINK) })).rejects.toThrow(
      `a link of at most ${MAX_LINK} characters`,
    );
  });

  it("that is made is made with its cursor, too", async () => {
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

  it("of the docs leads to scenarios that there are", () => {
    const root = new URL("../../../../", import.meta.url);
    const links = readFileSync(new URL("docs/laboratory/embed.md", root), "utf8").match(/#\/[a-z]+\?[^\s`"]+/g) ?? [];
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) {
      const { scenario = "" } = placeOf(link).words;
      expect(existsSync(new URL(`scenarios/${scenario}.yaml`, root)), link).toBe(true);
    }
  });
});
