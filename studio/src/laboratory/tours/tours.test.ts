/** Tours are held to what runs show: nothing of an answer is written down. */
import { describe, expect, it } from "vitest";
import { stateText } from "../../diagram/states.ts";
import { factsOf } from "../../diagram/topology/facts.ts";
import { TestedLaboratory } from "../engine/laboratory-under-test.ts";
import type { Words } from "../engine/recipe.ts";
import { phrasesIn } from "./phrases.ts";
import { type Language, languages } from "./texts.ts";
import { placesOf, rightOf } from "./tour.ts";
import { tours } from "./tours.ts";

const laboratory = new TestedLaboratory();

/** The rest is in the long run: some of their runs take seconds. */
const QUICK: ReadonlySet<string> = new Set(["one-lap"]);

const numbersIn = (text: string): string[] => (text.match(/\d+/g) ?? []).toSorted();

/** Wherever somebody moves the cursor, headline and properties are in each language, with the numbers that they have in English. */
async function expectSpoken(runs: readonly Words[]): Promise<void> {
  const texts = new Set<string>();
  for (const words of runs) {
    const run = await laboratory.run(words);
    for (const { name, claim, why } of run.properties)
      for (const text of [name, claim, ...(why === "" ? [] : [why])]) texts.add(text);
    for (const text of drawnIn(run)) texts.add(text);
    for (let step = -1; step < run.steps.length; step++) {
      const { headline, arrangement, inFlight } = await laboratory.look(step);
      const { nodes } = arrangement;
      const titles = nodes.flatMap(({ node, heldBack, position: { holds, votingSet } }) => [
        ...(heldBack === 0 ? [] : [`${heldBack} held back`]),
        ...(holds === undefined ? [] : [`has the ${holds}`]),
        ...(votingSet === undefined ? [] : [`the voting set of ${node}`]),
      ]);
      for (const text of [headline, ...factsOf(arrangement, inFlight), ...titles]) texts.add(text);
    }
  }
  for (const language of Object.keys(languages) as Language[]) {
    const phrases = await phrasesIn(language);
    const said = [...texts].map((text) => [text, phrases.of(text)] as const);
    expect(said.filter(([, own]) => own === null)).toEqual([]);
    if (language === "en") expect(said.filter(([text, own]) => own !== text)).toEqual([]);
    else expect(said.filter(([text, own]) => own === text && !/^[\d.]+ ms$/.test(text))).toEqual([]);
    for (const [text, own] of said) expect(numbersIn(own ?? ""), own ?? "").toEqual(numbersIn(text));
  }
}

/** `link to 1: 100 ms of delay` is translated in parts. */
function partsOfMark(label: string): string[] {
  const [, link, conditions] = /^(link to \d+): (.*)$/.exec(label) ?? [];
  return link === undefined || conditions === undefined ? [label] : [link, ...conditions.split(", ")];
}

/** What is written in the picture, but for what the algorithm calls its own. */
function drawnIn({ drawing, unit }: Awaited<ReturnType<typeof laboratory.run>>): string[] {
  const faults = drawing.axes.time.networks.flatMap(({ words }) => words.split("; ")).filter((words) => words !== "");
  const conditions = faults.flatMap((fault) => {
    const [, own] = /^[\d, –→]+: (.*)$/.exec(fault) ?? [];
    return own?.split(", ") ?? [fault];
  });
  const marks = drawing.marks.flatMap(({ kind, label }) =>
    kind === "timeout" || kind === "fault"
      ? label
          .split(" · ")
          .filter((part) => /^timeout: |link|partition/.test(part))
          .flatMap(partsOfMark)
      : [],
  );
  const losses = drawing.messages.flatMap(({ lost }) => (lost === null ? [] : [`lost (${lost})`]));
  const lasting = drawing.states
    .filter(({ kind, words }) => words === "" || (kind !== "electing" && kind !== "view")) // Roles are the algorithm's own.
    .flatMap((state) => stateText(state).split(", ").slice(0, 1));
  const ticks = unit === "ms" ? drawing.axes.time.ticks.map(({ text }) => text) : [];
  return [...conditions, ...marks, ...losses, ...lasting, ...ticks];
}

describe.each(tours)("the tour $name", (tour) => {
  it("goes to places that its runs have, shows what is there, and asks what they answer", {
    tags: QUICK.has(tour.name) ? [] : ["long"],
  }, async () => {
    const runs = [];
    for (const words of tour.runs) runs.push(await laboratory.run(words));
    const places = placesOf(tour, runs);
    expect(tour.steps.flatMap(({ at }, index) => (places[index] === null ? [at] : []))).toEqual([]);

    const looks = [];
    for (const [which, words] of tour.runs.entries()) {
      await laboratory.run(words);
      for (const [index, { run = 0 }] of tour.steps.entries())
        if (run === which) looks[index] = await laboratory.look(places[index] as number);
    }
    for (const [index, { run = 0, nodes, fields = [] }] of tour.steps.entries()) {
      const all = looks[index]?.nodes ?? [];
      expect(all.map(({ node }) => node)).toEqual(expect.arrayContaining([...nodes]));
      expect(looks[index]?.hasStates, `states in run ${run}`).toBe(true);
      const paths = all
        .filter(({ node }) => nodes.includes(node))
        .flatMap((node) => node.fields.map(({ path }) => path));
      for (const field of fields)
        expect(
          paths.some((path) => path === field || path.startsWith(`${field}.`)),
          `${tour.name} ${index + 1} ${field}`,
        ).toBe(true);
    }

    await expectSpoken(tour.runs);

    const asked = tour.steps.flatMap(({ ask }, index) => (ask === undefined ? [] : [index]));
    expect(asked).toHaveLength(1);
    const [step] = asked as [number];
    const [{ ask = [], run = 0 }, following] = tour.steps.slice(step) as [
      (typeof tour.steps)[number],
      (typeof tour.steps)[number],
    ];
    const target = following.run ?? 0;
    const right = rightOf(ask, {
      run: runs[target] as (typeof runs)[number],
      after: target === run ? (places[step] as number) : -1,
      place: places[step + 1] as number,
      headline: looks[step + 1]?.headline ?? "",
    });
    expect(right).toHaveLength(1);
    expect(tour.steps.length).toBeGreaterThanOrEqual(5);
    expect(tour.steps.length).toBeLessThanOrEqual(10);
  });
});
