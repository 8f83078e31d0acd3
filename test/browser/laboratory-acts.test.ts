/**
 * Performs actions at the cursor in a real browser, by mouse and by keyboard. The page must show the run that the same
 * actions produce in Node.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { actsAt } from "../../studio/src/laboratory/acts.ts";
import { Causes } from "../../studio/src/laboratory/causes.ts";
import { TestedLaboratory } from "../../studio/src/laboratory/engine/laboratory-under-test.ts";
import { hashOf as hashOfPlace, placeOf, type Words } from "../../studio/src/laboratory/engine/recipe.ts";
import { noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";
import { hashOf, headline, laboratoryForTests, ready, settled, stepOf } from "./laboratory-under-test.ts";

/**
 * Two elections, one of them on a ring, a lock, a multicast, consensus, and a failure detector, whose entries are
 * folded except for the start.
 */
const cases = [
  ["bully", 4],
  ["isis", 3],
  ["chang-roberts", 4],
  ["ricart-agrawala", 3],
  ["paxos", 3],
  ["heartbeat", 3],
] as const;

/** The actions on messages. Protocols with timers also offer `Fire`. The ring has no timers. */
const onMessages = ["Lose", "Duplicate", "Delay"] as const;
const messageCases = [
  ["chang-roberts", 4, onMessages],
  ["view-synchrony", 3, [...onMessages, "Fire"]],
  ["bully", 4, [...onMessages, "Fire"]],
  ["ricart-agrawala", 3, [...onMessages, "Fire"]],
  ["paxos", 3, [...onMessages, "Fire"]],
  ["heartbeat", 3, [...onMessages, "Fire"]],
] as const;

/** The number of cases in each run of all tests. The others are tagged `larger`. */
const FEW = 2;

/** Protocols whose periodic messages are not drawn. */
const folds: ReadonlySet<string> = new Set(["heartbeat"]);

const sorted = (ways: readonly object[]): string[] => ways.map((way) => JSON.stringify(way)).toSorted();

describe.skipIf(noBrowser !== null)("actions at the cursor", () => {
  const laboratory = laboratoryForTests();
  const node = new TestedLaboratory();

  /** Expects the page to show the run of its own address, as Node computes it. */
  async function expectSame(page: Page): Promise<void> {
    await settled(page);
    const { words } = placeOf(await hashOf(page));
    const run = await node.run(words);
    const rows = run.steps.map(({ lines }) => lines.join("; "));
    await expect.poll(() => page.locator("tbody button").allInnerTexts()).toEqual(rows);
    const look = await node.look(await stepOf(page));
    await expect.poll(() => headline(page)).toBe(look.headline);
    for (const { node: id, condition } of look.nodes)
      expect(await page.getByTestId(`state-${id}`).getAttribute("data-condition")).toBe(condition);
  }

  /** Opens the palette, types some words, presses Enter, and waits until the resulting run is shown. */
  async function act(page: Page, words: string): Promise<void> {
    await settled(page);
    const before = await hashOf(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search actions" }).fill(words);
    await page.locator("#palette-list li").first().waitFor();
    await page.keyboard.press("Enter");
    const forkIn = (hash: string) => placeOf(hash).words.fork;
    await expect.poll(async () => forkIn(await hashOf(page))).not.toBe(forkIn(before));
    await settled(page);
  }

  const [few, others] = [cases.slice(0, FEW), cases.slice(FEW)];
  const byKeyboard = "%s: each verb by keyboard alone, and undo";
  test.each(few)(byKeyboard, actsByKeyboard);
  test.each(others)(byKeyboard, { tags: ["larger"] }, actsByKeyboard);

  async function actsByKeyboard(protocol: string, nodes: number): Promise<void> {
    const page = await laboratory.open(`#/run?protocol=${protocol}&nodes=${nodes}`);
    await ready(page);
    await expectSame(page);
    for (const words of ["pause node 1", "resume node 1", "crash node 2", "recover node 2", "link 0 cut 1", "heal"]) {
      await act(page, words);
      await expectSame(page);
    }
    for (const words of ["slow link 0 1", "isolate node 1"]) {
      await act(page, words);
      await expectSame(page);
    }
    const { verb } = await node.run({ protocol, nodes: String(nodes) });
    if (verb !== null) {
      await act(page, `command node 0 ${verb}`);
      await expectSame(page);
    }
    const forks = (placeOf(await hashOf(page)).words.fork ?? "").split(";");
    await page.keyboard.press("Control+z");
    await expect.poll(async () => placeOf(await hashOf(page)).words.fork).toBe(forks.slice(0, -1).join(";"));
    await expectSame(page);
  }

  /** Returns the first step after all nodes have started where an action of that name is available, and its label. */
  async function firstOf(
    name: string,
    words: Words,
  ): Promise<{ readonly step: number; readonly label: string } | null> {
    const run = await node.run(words);
    for (let step = run.steps.findLastIndex(({ lines }) => lines[0] === "starts"); step < run.steps.length; step++) {
      const act = actsAt(await node.look(step), run).find(({ label }) => label.startsWith(name));
      if (act !== undefined) return { step, label: act.label };
    }
    return null;
  }

  const [fewMessageCases, otherMessageCases] = [messageCases.slice(0, FEW), messageCases.slice(FEW)];
  const onMessagesAndTimers = "%s: a message is lost, duplicated and delayed, a timer fired now";
  test.each(fewMessageCases)(onMessagesAndTimers, actsOnMessages);
  test.each(otherMessageCases)(onMessagesAndTimers, { tags: ["larger"] }, actsOnMessages);

  async function actsOnMessages(protocol: string, nodes: number, verbs: readonly string[]): Promise<void> {
    const words = { protocol, nodes: String(nodes) };
    const page = await laboratory.open(hashOfPlace({ page: "run", words }));
    await page.setViewportSize({ width: 1_900, height: 1_000 });
    await ready(page);
    for (const verb of verbs) {
      const first = await firstOf(verb, words);
      if (first === null) throw new Error(`expected something to ${verb}, got nothing`);
      await page.evaluate(
        `location.hash = ${JSON.stringify(hashOfPlace({ page: "run", words: { ...words, at: String(first.step) } }))}`,
      );
      await expect.poll(() => stepOf(page)).toBe(first.step);
      await act(page, first.label);
      await expectSame(page);
      // A second action keeps the first one, even if the run now has two messages with the same label.
      await act(page, "pause node 0");
      await expectSame(page);
      await page.getByRole("button", { name: "Whole run" }).click();
      const run = await node.run(placeOf(await hashOf(page)).words);
      const ways = run.drawing.messages.map(({ name, from, to, lost }) => ({
        type: name.short,
        from,
        to,
        lost: lost !== null,
      }));
      await expect.poll(async () => sorted((await drawn(page))?.messages ?? [])).toEqual(sorted(ways));
      if (verb === "Lose" && !folds.has(protocol)) expect(ways.some(({ lost }) => lost)).toBe(true);
    }
  }

  test("an element is acted on by right click, and the event at the cursor by a key", async () => {
    const run = await node.run({ protocol: "bully", nodes: "4" });
    const asked = run.drawing.messages[0]?.sent ?? 0;
    const page = await laboratory.open(`#/run?protocol=bully&nodes=4&at=${asked}`);
    await ready(page);
    await settled(page);
    const middle = await page.evaluate<{ x: number; y: number }>(`(() => {
      const canvas = document.querySelector(".view canvas");
      const { start, end } = canvas.picture.arrows[0];
      const box = canvas.getBoundingClientRect();
      return { x: box.left + (start.x + end.x) / 2, y: box.top + (start.y + end.y) / 2 };
    })()`);
    await page.mouse.click(middle.x, middle.y, { button: "right" });
    await page.getByRole("menuitem", { name: /^Lose: / }).click();
    await expect.poll(async () => placeOf(await hashOf(page)).words.fork).toMatch(/ lose /);
    await expectSame(page);
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menuitem", { name: /^Crash node/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(async () => placeOf(await hashOf(page)).words.fork).toMatch(/ crash /);
    await expectSame(page);
  });

  test("an action further back keeps the previous run as a branch, which a click or a key opens", async () => {
    const page = await laboratory.open("#/run?protocol=bully&nodes=4&at=8");
    await ready(page);
    await act(page, "crash node 3");
    await page.keyboard.press("Home");
    for (let presses = 0; presses < 6; presses++) await page.keyboard.press("ArrowRight");
    await act(page, "pause node 1");
    await expectSame(page);
    const shown = page.locator("[data-fork][aria-current]");
    await expect.poll(() => shown.innerText()).toMatch(/^pause node 1/);
    const crash = page.getByRole("button", { name: /^crash node 3/ });
    await crash.click();
    await expect.poll(() => shown.innerText()).toMatch(/^crash node 3/);
    await expectSame(page);
    const forkOf = async () => placeOf(await hashOf(page)).words.fork;
    const crashed = await forkOf();
    await page.locator("h1").click();
    await page.keyboard.press("b");
    await expect.poll(forkOf).not.toBe(crashed);
    await page.keyboard.press("Shift+B");
    await expect.poll(forkOf).toBe(crashed);
    await expectSame(page);
    await page.keyboard.press("Control+z");
    await expect.poll(forkOf).toBeUndefined();
    await expect
      .poll(() => page.locator("[data-fork]").allInnerTexts())
      .toEqual(["the original run", expect.stringMatching(/^pause node 1/)]);
  });

  test("each key acts on the result of the key before it, no matter how fast they follow", async () => {
    const page = await laboratory.open("#/run?protocol=bully&nodes=4&at=8");
    await ready(page);
    await act(page, "crash node 3");
    const { fork } = placeOf(await hashOf(page)).words;
    const press = (keys: string) =>
      page.evaluate(`for (const pressed of ${keys}) window.dispatchEvent(new KeyboardEvent("keydown", pressed))`);
    await press(`[{ key: "b" }, { key: "b" }]`); // Switch to the original run and back.
    expect(placeOf(await hashOf(page)).words.fork).toBe(fork);
    await expectSame(page);
    await press(`[{ key: "b" }, { key: "b" }, { key: "z", ctrlKey: true }]`);
    expect(placeOf(await hashOf(page)).words).not.toHaveProperty("branches");
    await expectSame(page);
  });

  test("a selection dims everything outside its causal past and future, and Shift with the arrows follows causes", async () => {
    const page = await laboratory.open("#/run?protocol=ricart-agrawala&nodes=3&at=4");
    await page.setViewportSize({ width: 1_720, height: 1_000 }); // Now everything fits in the window.
    await ready(page);
    await settled(page);
    const run = await node.run({ protocol: "ricart-agrawala", nodes: "3" });
    const causes = new Causes(run);
    const shown = () =>
      page.evaluate<number>(`document.querySelector(".related canvas")?.picture?.arrows.length ?? -1`);
    const relatedTo = (step: number) => {
      const cone = causes.coneOf(step);
      return run.drawing.messages.filter(({ sent, ended }) => cone.has(sent ?? -1) && cone.has(ended ?? -1)).length;
    };
    expect(await shown()).toBe(-1);
    await page.keyboard.press("c");
    await expect.poll(shown).toBe(relatedTo(4));
    expect(relatedTo(4)).toBeLessThan(run.drawing.messages.length);
    await page.keyboard.press("Shift+ArrowRight");
    await expect.poll(() => stepOf(page)).toBe(causes.effectOf(4));
    await page.keyboard.press("Shift+ArrowLeft");
    await expect.poll(() => stepOf(page)).toBe(causes.causeOf(causes.effectOf(4)));
    await page.keyboard.press("Escape");
    await expect.poll(shown).toBe(-1);
  });
});
