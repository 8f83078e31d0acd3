/**
 * Finds text that its picture or its panel cuts off, in each step of each tour and in the opening picture of each
 * protocol.
 *
 * @module-tag long
 */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { protocolNames } from "../../src/protocols/index.ts";
import { textOf } from "../../studio/src/laboratory/tours/tour.ts";
import { tours } from "../../studio/src/laboratory/tours/tours.ts";
import { noBrowser } from "./chromium.ts";
import { calm, laboratoryForTests, settled } from "./laboratory-under-test.ts";

/** Records the corners of each text on each canvas since it was cleared, because afterwards only pixels remain. */
const NOTING_TEXT = `
  window.written = new Map();
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    window.written.set(this.canvas, []);
    return clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
    const at = this.getTransform();
    const corners = [[x - left, y - up], [x + right, y - up], [x - left, y + down], [x + right, y + down]].map(([x, y]) => at.transformPoint({ x, y }));
    const all = window.written.get(this.canvas) ?? [];
    window.written.set(this.canvas, [...all, { text, xs: corners.map(({ x }) => x), ys: corners.map(({ y }) => y) }]);
    return fillText.call(this, text, x, y, ...rest);
  };
`;

/**
 * Returns text that extends beyond the edge of its picture by more than a pixel, and elements whose content is wider
 * than they are.
 */
const CLIPPED = `(() => {
  const cut = [];
  for (const [canvas, texts] of window.written) {
    if (!canvas.isConnected) continue;
    for (const { text, xs, ys } of texts) {
      const over = Math.max(-Math.min(...xs), Math.max(...xs) - canvas.width, -Math.min(...ys), Math.max(...ys) - canvas.height);
      const isOutside = Math.max(...xs) <= 0 || Math.min(...xs) >= canvas.width;
      if (over > devicePixelRatio && !isOutside) cut.push("canvas: " + text + " by " + Math.round(over) + " px");
    }
  }
  for (const text of document.querySelectorAll("main svg text")) {
    const svg = text.closest("svg").getBoundingClientRect();
    const box = text.getBoundingClientRect();
    if (box.width > 0 && (box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1 || box.bottom > svg.bottom + 1))
      cut.push("svg: " + text.textContent);
  }
  for (const each of document.querySelectorAll("main *")) {
    const { overflowX } = getComputedStyle(each);
    if (!(each instanceof HTMLElement) || each.clientWidth === 0 || overflowX === "auto" || overflowX === "scroll") continue;
    if (each.closest(".unseen, .view") === null && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
      cut.push("element: " + each.tagName + "." + each.className + " " + each.textContent.trim().slice(0, 60));
  }
  return cut;
})()`;

describe.skipIf(noBrowser !== null)("the laboratory cuts off no text", () => {
  const laboratory = laboratoryForTests();

  /** Visits these places with one page, as a reader does. */
  async function walked(places: readonly string[], arrived: (page: Page, place: string) => Promise<unknown>) {
    await laboratory.context.addInitScript(NOTING_TEXT);
    const page = await laboratory.open("#/gallery");
    const clipped: [string, string[]][] = [];
    for (const place of places) {
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await arrived(page, place);
      await page.evaluate(
        "document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))",
      );
      const cut = await page.evaluate<string[]>(CLIPPED);
      if (cut.length > 0) clipped.push([place, cut]);
    }
    return clipped;
  }

  test("at any step of a tour", async () => {
    const places = tours.flatMap((tour) =>
      tour.steps.map((_step, step) => ({ tour, place: `#/tour?tour=${tour.name}&step=${step + 1}` })),
    );
    const titles = new Map(places.map(({ tour, place }) => [place, textOf(tour, "title")]));
    const clipped = await walked([...titles.keys()], async (page, place) => {
      const step = new URLSearchParams(place.split("?")[1]).get("step");
      await page.locator("h1", { hasText: titles.get(place) as string }).waitFor();
      await page.locator(`[data-testid="tour-step"][data-step="${step}"]`).waitFor();
      await settled(page);
    });
    expect(clipped).toEqual([]);
  });

  test("when a protocol's run is opened", async () => {
    const places = protocolNames.map((name) => `#/run?protocol=${name}`);
    const clipped = await walked(places, async (page, place) => {
      await page.waitForFunction(`document.querySelector('[data-testid="cursor"], [role=alert]') !== null`);
      await calm(page);
      if ((await page.getByRole("alert").count()) === 0) await settled(page);
      else throw new Error(`${place}: ${await page.getByRole("alert").first().innerText()}`);
    });
    expect(clipped).toEqual([]);
  });
});
