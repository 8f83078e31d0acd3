import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { placeOf } from "./engine/recipe.ts";
import { plainRunes } from "./plain-runes.ts";

const bar = { hash: "" };
/** As a browser does, later. */
let tellOfChange = () => {};
let where: typeof import("./where.svelte.ts").where;

beforeAll(async () => {
  plainRunes();
  vi.stubGlobal("location", bar);
  vi.stubGlobal("history", { replaceState: (_state: unknown, _title: string, hash: string) => (bar.hash = hash) });
  vi.stubGlobal("addEventListener", (_name: string, listener: () => void) => (tellOfChange = listener));
  ({ where } = await import("./where.svelte.ts"));
});
afterAll(() => void vi.unstubAllGlobals());

beforeEach(() => {
  bar.hash = "#/run?scenario=bully-a-highest-crashed&at=2";
  tellOfChange();
});

test("the step that the cursor has gone to is in the link and among the words, and makes no run anew", () => {
  const { place } = where;
  where.noteCursor(7);
  expect(bar.hash).toBe("#/run?scenario=bully-a-highest-crashed&at=7");
  expect(where.wordsAtCursor).toEqual({ scenario: "bully-a-highest-crashed", at: "7" });
  expect(where.place).toBe(place);
});

test("another run does not begin where the cursor stood in this one", () => {
  where.noteCursor(7);
  where.go("run", { protocol: "bully" });
  tellOfChange();
  expect(where.wordsAtCursor).toEqual({ protocol: "bully" });
});

test("the step of a run that is left is not noted in the address of the next", () => {
  bar.hash = "#/run?protocol=ring"; // By hand, and not told yet.
  where.noteCursor(7);
  expect(bar.hash).toBe("#/run?protocol=ring");
});

test("to go where one is already begins anew, since no change of the address is told", () => {
  where.go("check", { protocol: "raft", nodes: "3" });
  tellOfChange();
  const { place } = where;
  where.go("check", { protocol: "raft", nodes: "3" });
  expect(where.place).not.toBe(place);
  expect(where.place).toEqual({ page: "check", words: { protocol: "raft", nodes: "3" } });
});

test("where one goes one is at once, and nothing begins anew when the change is told", () => {
  where.go("run", { protocol: "bully" });
  const { place } = where;
  expect(place).toEqual({ page: "run", words: { protocol: "bully" } });
  where.noteCursor(4);
  tellOfChange();
  expect(where.place).toBe(place);
  expect(where.wordsAtCursor).toEqual({ protocol: "bully", at: "4" });
});

test("back, before the change was told, is where one was", () => {
  const before = bar.hash;
  where.go("run", { protocol: "bully" });
  bar.hash = before;
  tellOfChange();
  expect(where.place).toEqual(placeOf(before));
});
