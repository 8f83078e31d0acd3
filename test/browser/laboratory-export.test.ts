/**
 * Checks that the screen can be saved as a file with its nodes, messages and title, as SVG and as PNG.
 *
 * @module-tag long
 */
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { noBrowser } from "./chromium.ts";
import { drawn } from "./drawn.ts";
import { laboratoryForTests, ready, settled } from "./laboratory-under-test.ts";

/** The title is above the diagram. A PNG has twice the resolution of the screen. */
const [TITLE_PX, RATIO] = [40, 2];
/** The size of the inspected square. It must be larger than the gaps in lines. */
const NEAR_PX = 15;

async function exported(page: Page, kind: "SVG" | "PNG"): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: kind, exact: true }).click(),
  ]);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

interface Parsed {
  readonly isBroken: boolean;
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly texts: readonly string[];
  /** The nodes from top to bottom. */
  readonly nodes: readonly string[];
}

const parsed = (page: Page, { bytes }: { readonly bytes: Buffer }): Promise<Parsed> =>
  page.evaluate<Parsed>(`(() => {
    const read = new DOMParser().parseFromString(${JSON.stringify(bytes.toString("utf8"))}, "image/svg+xml");
    const root = read.documentElement;
    const texts = [...read.querySelectorAll("text")];
    const down = (text) => Number(/ ([-\\d.]+)\\)/.exec(text.getAttribute("transform"))[1]);
    return {
      isBroken: read.querySelector("parsererror") !== null,
      title: read.querySelector("title")?.textContent,
      width: root.width.baseVal.value,
      height: root.height.baseVal.value,
      texts: texts.map(({ textContent }) => textContent),
      nodes: texts.filter(({ textContent }) => /^node \\d+$/.test(textContent)).sort((a, b) => down(a) - down(b)).map(({ textContent }) => textContent),
    };
  })()`);

/** Returns whether there is ink near these points of the PNG, and how many of its pixels differ from the background. */
const inkIn = (page: Page, bytes: Buffer, points: readonly { x: number; y: number }[]) =>
  page.evaluate<{ width: number; height: number; isInked: boolean[]; inked: number }>(`(async () => {
    const bytes = Uint8Array.from(atob("${bytes.toString("base64")}"), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const all = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    const near = [...Array(${NEAR_PX}).keys()].map((away) => away - ${(NEAR_PX - 1) / 2});
    return {
      width,
      height,
      isInked: ${JSON.stringify(points)}.map(({ x, y }) => near.some((down) => near.some((right) => all[(y + down) * width + x + right] !== all[0]))),
      inked: all.reduce((count, colour) => count + (colour === all[0] ? 0 : 1), 0),
    };
  })()`);

/** Returns the middle of each message in the picture on the screen, and the width of the names next to it. */
const places = (page: Page) =>
  page.evaluate<{ names: number; width: number; height: number; middles: { x: number; y: number }[] }>(`(() => {
    const { picture } = document.querySelector(".view canvas");
    return {
      names: document.querySelector(".names").width.baseVal.value,
      width: picture.frame.width,
      height: picture.height,
      middles: picture.arrows.map(({ start, end }) => ({ x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 })),
    };
  })()`);

describe.skipIf(noBrowser !== null)("the screen as a file", () => {
  const laboratory = laboratoryForTests();

  test("has the title, the rows in their order and every message, as SVG and as PNG", async () => {
    const page = await laboratory.open("#/run?scenario=chang-roberts-ring-of-seven");
    await ready(page);
    await page.getByRole("button", { name: "To the end" }).click();
    await settled(page);
    await page.getByRole("button", { name: "Whole run" }).click();
    const title = await page.locator(".title").innerText();
    const shown = await drawn(page);
    const { names, width, height, middles } = await places(page);
    const rows = await page.locator(".names text:not(.unit)").allTextContents();

    const svg = await exported(page, "SVG");
    expect(svg.name).toMatch(/^[\w-]+\.svg$/);
    const read = await parsed(page, svg);
    expect(read).toMatchObject({
      isBroken: false,
      title,
      nodes: rows,
      width: width + names,
      height: height + TITLE_PX,
    });
    expect(read.texts).toEqual(expect.arrayContaining([title, ...(shown?.words ?? [])]));
    expect(shown?.words.length).toBeGreaterThan(5);

    const png = await exported(page, "PNG");
    expect(png.name).toBe(svg.name.replace(/svg$/, "png"));
    const inFile = middles.map(({ x, y }) => ({
      x: Math.round((x + names) * RATIO),
      y: Math.round((y + TITLE_PX) * RATIO),
    }));
    const image = await inkIn(page, png.bytes, inFile);
    expect(image).toMatchObject({ width: read.width * RATIO, height: read.height * RATIO });
    expect(middles.length).toBeGreaterThan(5);
    expect(image.isInked).toEqual(middles.map(() => true));
    expect(image.inked / (image.width * image.height)).toBeGreaterThan(0.005);
  });

  test("shows no more than the screen: future events are veiled, and hidden in a tour", async () => {
    const page = await laboratory.open("#/tour?tour=one-lap&step=3");
    await page.waitForSelector('[data-testid="headline"][data-step]');
    await settled(page);
    await page.getByRole("button", { name: "Whole run" }).click();
    const { names, middles } = await places(page);
    const png = await exported(page, "PNG");
    const inFile = middles.map(({ x, y }) => ({
      x: Math.round((x + names) * RATIO),
      y: Math.round((y + TITLE_PX) * RATIO),
    }));
    await expect.poll(() => page.locator(".veil").count()).toBe(1);
    const left = await page.locator(".veil").evaluate((veil) => (veil as unknown as { offsetLeft: number }).offsetLeft);
    const image = await inkIn(page, png.bytes, inFile);
    const later = middles.flatMap(({ x }, place) => (x > left + NEAR_PX ? [image.isInked[place]] : []));
    expect(later.length).toBeGreaterThan(0);
    expect(later).toEqual(later.map(() => false));
    const { texts } = await parsed(page, await exported(page, "SVG"));
    const words = (await drawn(page))?.words ?? [];
    expect(words.some((text) => text.includes("24 leads") || text.includes("elected"))).toBe(true);
    expect(texts.filter((text) => text.includes("24 leads") || text.includes("elected"))).toEqual([]);
  });
});
