import { describe, expect, it, test } from "vitest";
import { afterAct, withoutLastFork } from "../forking.ts";
import type { ShownRun } from "./answers.ts";
import { casesOf, commandOf, comparing, forksOf, frameOf, hashOf, placeOf } from "./recipe.ts";

describe("a link", () => {
  it("contains all its words", () => {
    const words = {
      protocol: "ricart-agrawala",
      nodes: "3",
      request: "0,2",
      options: '{"a":1}',
      at: "-1",
      fork: "7 timer 2 mutex.pass",
    };
    expect(placeOf(hashOf({ page: "run", words }))).toEqual({ page: "run", words });
  });

  it("that is empty or invalid leads to the gallery", () => {
    for (const hash of ["", "#", "#/nowhere", "#run", "#/?x"]) expect(placeOf(hash).page).toBe("gallery");
  });

  it("has the equivalent command", () => {
    expect(commandOf({ page: "run", words: { protocol: "bully", nodes: "8", started: "on", at: "3", loss: "" } })).toBe(
      "npx coterie sim bully --nodes 8 --started",
    );
    expect(commandOf({ page: "check", words: { protocol: "bully", maxStates: "9" } })).toBe(
      "npx coterie check bully --max-states 9",
    );
    expect(commandOf({ page: "run", words: { protocol: "bully", fork: "1 crash 0" } })).toBeNull();
  });

  it("has no command for a scenario under another algorithm or variant", () => {
    const command = (words: Record<string, string>, own: Record<string, string> = { protocol: "maekawa" }) =>
      commandOf({ page: "run", words: { scenario: "maekawa-deadlock", ...words } }, own);
    const same = "npx coterie sim scenarios/maekawa-deadlock.yaml";
    expect(command({})).toBe(same);
    expect(command({ protocol: "maekawa" })).toBe(same);
    expect(command({ protocol: "maekawa", variant: "sanders" }, { protocol: "maekawa", variant: "sanders" })).toBe(
      same,
    );
    expect(command({ protocol: "ricart-agrawala" })).toBeNull();
    expect(command({ protocol: "maekawa", variant: "sanders" })).toBeNull();
    expect(commandOf({ page: "check", words: { scenario: "maekawa-deadlock", protocol: "maekawa" } })).toBe(
      "npx coterie check maekawa",
    );
  });

  it("has a command with correctly quoted words", () => {
    expect(commandOf({ page: "run", words: { recording: "it's mine.jsonl" } })).toBe(
      String.raw`npx coterie trace 'it'\''s mine.jsonl'`,
    );
    expect(commandOf({ page: "check", words: { protocol: "bully;ls", "a b": "on", options: `{"a":"it's"}` } })).toBe(
      String.raw`npx coterie check 'bully;ls' '--a b' --options '{"a":"it'\''s"}'`,
    );
  });

  it("keeps valid acts", () => {
    expect(forksOf("57 crash 2;and so on;80 timer 3 log.election;9 explode 1")).toEqual([
      { entries: 57, act: "crash", node: 2, what: "" },
      { entries: 80, act: "timer", node: 3, what: "log.election" },
    ]);
  });
});

test("drops later acts on an act at the cursor, and takes back the last one on Undo", () => {
  const forks = forksOf("2 crash 0;9 start 0");
  const run = { steps: [{ entries: 1 }, { entries: 5 }], forks } as unknown as ShownRun;
  const words = afterAct({ protocol: "bully", at: "1" }, run, 1, { act: "crash", node: 1, what: "" });
  expect(words).toEqual({ protocol: "bully", fork: "2 crash 0;5 crash 1" });
  expect(withoutLastFork(words)).toEqual({ protocol: "bully", fork: "2 crash 0" });
  expect(withoutLastFork(withoutLastFork(words))).toEqual({ protocol: "bully" });
});

describe("several protocols in one link", () => {
  const words = { protocol: "bully", variant: "monitored", with: "ring,chang-roberts,ring", nodes: "6", at: "3" };

  it("are distinct cases with the same words", () => {
    expect(casesOf(words)).toEqual([
      { name: "bully:monitored", words: { protocol: "bully", variant: "monitored", nodes: "6" } },
      { name: "ring", words: { protocol: "ring", nodes: "6" } },
      { name: "chang-roberts", words: { protocol: "chang-roberts", nodes: "6" } },
    ]);
  });

  it("can be added and removed", () => {
    const left = comparing(words, ["ring", "bully:monitored"]);
    expect(left).toEqual({ protocol: "ring", with: "bully:monitored", nodes: "6" });
    expect(casesOf(left).map(({ name }) => name)).toEqual(["ring", "bully:monitored"]);
    expect(comparing(left, ["ring"])).toEqual({ protocol: "ring", nodes: "6" });
  });
});

test("gives a frame the link of the run, with escaped words", () => {
  const code = frameOf("https://your.host/laboratory.html", { protocol: "bully", crash: "4", at: "9" }, 'it "leads"');
  expect(code).toContain('src="https://your.host/laboratory.html?embed#/run?protocol=bully&amp;crash=4&amp;at=9"');
  expect(code).toContain('title="it &quot;leads&quot;"');
});
