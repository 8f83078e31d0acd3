import { describe, expect, it } from "vitest";
import { everyKind, holdBack, lasso, receive, send, traceOf } from "../../../test/trace/small-traces.ts";
import type { NodeId } from "../../core/protocol.ts";
import { protocolNamed } from "../../protocols/index.ts";
import { simulation } from "../../sim/index.ts";
import type { TraceEntry } from "../entry.ts";
import { excerptOf } from "../excerpt.ts";
import type { Trace } from "../file.ts";
import { trackBox } from "./arrow-labels.ts";
import { tipBox } from "./arrows.ts";
import { type Box, boxesMeet, boxMeetsSegment, cornersOf, type Point } from "./boxes.ts";
import { drawLanes } from "./lanes.ts";
import { boxesOf, layOut, type Picture, signBoxes } from "./layout.ts";
import { drawSvg } from "./svg.ts";

/** Runs the model with commands to these nodes. */
function run(
  protocol: string,
  count: number,
  seed: number,
  asked: readonly NodeId[],
  times = 1,
  delayMs: [number, number] = [5, 15],
): Trace {
  const nodes = Array.from({ length: count }, (_, node) => node);
  const entries: TraceEntry[] = [];
  const { model, family } = protocolNamed(protocol);
  const sim = simulation({
    protocol: model(),
    nodes,
    seed,
    delayMs,
    trace: (entry) => entries.push(structuredClone(entry) as TraceEntry),
  });
  for (const node of nodes) sim.wake(node);
  if (protocol === "bully") sim.crash(count - 1);
  for (const node of asked) sim.command(node, family.ask(node, times) as never);
  sim.run();
  return traceOf(nodes, entries, { protocol, seed });
}

const traces: Readonly<Record<string, Trace>> = {
  "every kind of entry": everyKind,
  "a counterexample that repeats": lasso,
  "a held-back queue": holdBack,
  "bully, one crash": run("bully", 8, 1, [4]),
  "bully, three elections at once": run("bully", 6, 4, [0, 1, 2]),
  "Ricart–Agrawala, three entries each": run("ricart-agrawala", 5, 3, [0, 1, 2, 3, 4], 3),
  "duelling Paxos proposers": run("paxos", 3, 2, [0, 2]),
  "causal multicast": run("causal", 4, 2, [0, 1, 2], 2),
  "causal multicast, held back": run("causal", 4, 5, [0, 1, 2, 3], 3, [5, 80]),
  "nothing at all": traceOf([0, 1], []),
  "one node": traceOf([3], [{ at: 0, node: 3, kind: "start" }]),
  "two copies of a message, sent twice in one step": traceOf(
    [0, 1],
    [send(0, 0, 1, "a"), send(0, 0, 1, "b"), receive(1, 1, 0, "a"), receive(2, 1, 0, "a"), receive(2, 1, 0, "b")],
  ),
};

/** Returns the boxes of all texts and marks, which must not overlap. */
function things({ steps, lanes, arrows, arrowLabels, lossLabels, tracks, repeat }: Picture): Box[] {
  const y = new Map(lanes.map((lane) => [lane.node, lane.y]));
  return [
    ...steps.flatMap((step) => boxesOf(step, y.get(step.step.node) as number)),
    ...arrowLabels.map(({ box }) => box),
    ...lossLabels.map(({ box }) => box),
    ...arrows.filter(({ fate }) => fate === "lost").map(tipBox),
    ...tracks.flatMap(({ texts }) => texts),
    ...(repeat === null ? [] : signBoxes(repeat)),
  ];
}

describe.each(Object.entries(traces))("a picture of %s", (_name, trace) => {
  const excerpt = excerptOf(trace);
  const picture = layOut(excerpt, 900);

  it("has no text on another text or on a mark", () => {
    const boxes = things(picture);
    const meeting = boxes.flatMap((box, index) =>
      boxes.slice(index + 1).flatMap((other) => (boxesMeet(box, other) ? [[box, other]] : [])),
    );
    expect(meeting).toEqual([]);
  });

  it("has no text on a held message except its own", () => {
    const boxes = things({ ...picture, tracks: [] });
    for (const track of picture.tracks) expect(boxes.filter((box) => boxesMeet(box, trackBox(track)))).toEqual([]);
  });

  it("has no arrowhead under the text of a life line", () => {
    const y = new Map(picture.lanes.map((lane) => [lane.node, lane.y]));
    const labels = picture.steps.flatMap((step) =>
      step.label === null ? [] : boxesOf(step, y.get(step.step.node) as number).slice(-1),
    );
    for (const { points, fate } of picture.arrows.filter(({ points: { length } }) => length === 2)) {
      const [begin, tip] = points as [Point, Point];
      const share = 9 / Math.hypot(tip.x - begin.x, tip.y - begin.y);
      const back = { x: tip.x + (begin.x - tip.x) * share, y: tip.y + (begin.y - tip.y) * share };
      const hiding = labels.filter((label) => boxMeetsSegment(label, { a: back, b: tip }));
      if (fate === "received") expect(hiding).toEqual([]);
    }
  });

  it("has no arrow through a text: each text has a plate under it and above all arrows", () => {
    const sorts =
      /class="(casing|plate|label|name|name why)" (?:x="([-\d.]+)" y="([-\d.]+)"|transform="translate\(([-\d.]+) ([-\d.]+)\))?(?: width="([\d.]+)" height="([\d.]+)")?/g;
    for (const band of drawSvg(excerpt, { width: 900 }).split('class="axis"')) {
      const shapes = [...band.matchAll(sorts)].map(([, sort, x, y, atX, atY, width, height]) => ({
        sort,
        ...{ x: Number(x ?? atX), y: Number(y ?? atY), width: Number(width), height: Number(height) },
      }));
      const plates = shapes.filter(({ sort }) => sort === "plate");
      const texts = shapes.filter(({ sort }) => sort !== "plate" && sort !== "casing");
      expect(plates).toHaveLength(texts.length);
      for (const { x, y } of texts)
        expect(
          plates.some(
            (plate) => plate.x <= x && x <= plate.x + plate.width && plate.y <= y && y <= plate.y + plate.height,
          ),
        ).toBe(true);
      const order = shapes.map(({ sort }) => (sort === "casing" ? 0 : sort === "plate" ? 1 : 2));
      expect(order).toEqual(order.toSorted((a, b) => a - b));
    }
  });

  it("has bands of nearly equal width, except for a short last one", () => {
    const widths = picture.bands.map(({ left, right }) => right - left);
    const widest = Math.max(...widths);
    for (const width of widths.slice(0, -1)) expect(width).toBeCloseTo(widest);
    expect(widths.at(-1)).toBeLessThanOrEqual(widest + 0.001);
  });

  it("keeps every text within its band, and every arrow within the frame", () => {
    const { bands, height } = picture;
    for (const box of things(picture)) {
      const xs = cornersOf(box).map(({ x }) => x);
      const band = bands.find(({ left, right }) => left <= box.x && box.x <= right);
      expect(Math.min(...xs)).toBeGreaterThanOrEqual(band?.left ?? Number.NaN);
      expect(Math.max(...xs)).toBeLessThanOrEqual(band?.right ?? Number.NaN);
    }
    const [left, right] = [bands[0]?.left as number, bands.at(-1)?.right as number];
    for (const { x, y } of picture.arrows.flatMap(({ points }) => points)) {
      expect(x).toBeGreaterThanOrEqual(left);
      expect(x).toBeLessThanOrEqual(right);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y).toBeLessThanOrEqual(height);
    }
  });

  it("never places later steps left of earlier ones, and gives every message some distance", () => {
    for (const [index, { step, x }] of picture.steps.entries()) {
      const earlier = picture.steps.slice(0, index).filter((other) => other.step.at < step.at);
      for (const other of earlier) expect(other.x).toBeLessThanOrEqual(x);
    }
    for (const { points } of picture.arrows) expect(points.at(-1)?.x).toBeGreaterThan(points[0]?.x as number);
  });

  it("has a place for every step, message and node", () => {
    expect(picture.steps.flatMap(({ step }) => step.indices)).toHaveLength(trace.entries.length);
    const sent = trace.entries.filter(({ kind }) => kind === "send").length;
    expect(picture.arrows.length).toBeGreaterThanOrEqual(sent);
    expect(picture.lanes.map(({ node }) => node)).toEqual(trace.header.nodes);
  });

  it("is well-formed, and refers only to itself", () => {
    const svg = drawSvg(excerpt, { width: 900 });
    const open: string[] = [];
    for (const [, slash, name = "", end] of svg.matchAll(/<(\/?)([a-z]+)(?:\s[^<>]*?)?(\/?)>/g)) {
      if (slash === "/") expect(open.pop()).toBe(name);
      else if (end !== "/") open.push(name);
    }
    expect(open).toEqual([]);
    expect(svg.replaceAll(/<[^<>]+>/g, "")).not.toMatch(/[<>]|&(?!(?:amp|lt|gt|quot);)/);
    expect(svg).not.toMatch(/NaN|undefined|Infinity|null/);
    const ids = idsIn(svg);
    for (const [, id] of svg.matchAll(/url\(#([^)]+)\)/g)) expect(ids).toContain(id);
  });

  it("is deterministic", () => {
    expect(drawSvg(excerptOf(trace))).toBe(drawSvg(excerptOf(trace)));
  });
});

const idsIn = (svg: string): string[] => [...svg.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string);

describe("pictures", () => {
  it.each([
    ["every-kind", everyKind],
    ["lasso", lasso],
    ["hold-back", holdBack],
  ])("golden: %s", async (name, trace) => {
    await expect(drawSvg(excerptOf(trace), { prefix: "golden" })).toMatchFileSnapshot(`golden/${name}.svg`);
  });

  it("on one page share neither ids nor style rules", () => {
    const svgs = Object.values(traces).map((trace) => drawSvg(excerptOf(trace)));
    const ids = svgs.flatMap(idsIn);
    expect(new Set(ids).size).toBe(ids.length);
    for (const svg of svgs) {
      const [, prefix] = / id="(\w+)"/.exec(svg) ?? [];
      const rules = /<style>(.*)<\/style>/s.exec(svg)?.[1]?.split("\n") ?? [];
      expect(rules.length).toBeGreaterThan(10);
      const isOwn = (rule: string) => rule.startsWith(`#${prefix} `) || /^(@media [^#]*\{|\})$/.test(rule);
      expect(rules.filter((rule) => !isOwn(rule))).toEqual([]);
    }
  });

  it("that would be too long name their omissions", () => {
    const trace = run("bully", 6, 4, [0, 1, 2]);
    expect(drawSvg(excerptOf(trace), { maxEntries: 50 })).toContain(
      `>Only the first 50 of ${trace.entries.length} entries are drawn, up to`,
    );
    expect(drawSvg(excerptOf(trace), { maxEntries: 5_000 })).not.toContain("Only the first");
  });

  it("explain exactly the signs that occur in them", () => {
    const keys = (svg: string): string[] =>
      [...svg.matchAll(/class="key"[^>]*>([^<]*)</g)].map(([, word]) => word as string);
    expect(keys(drawSvg(excerptOf(lasso)))).toEqual(["prepare", "promise", "command", "timeout"]);
    expect(keys(drawSvg(excerptOf(everyKind)))).toEqual(
      expect.arrayContaining(["lost message", "in flight", "sent earlier", "paused", "not running", "time skipped"]),
    );
  });

  it("label a recording as one, and describe timeouts and undelivered messages in words", () => {
    const entries: TraceEntry[] = [
      { at: 0, node: 0, kind: "timeout", timer: "election.answer" },
      send(0, 0, 1, "a"),
      { at: 200, node: 1, kind: "lost", id: "a", to: 1, why: "down" },
    ];
    const svg = drawSvg(excerptOf(traceOf([0, 1], entries, { madeBy: "cluster", seed: null })));
    expect(svg).toContain(">bully, 2 nodes, recorded live<");
    expect(svg).toContain(">timeout: answer<");
    expect(svg).toContain(">not running<");
    expect(drawSvg(excerptOf(traceOf([0, 1], entries)))).not.toContain("record");
  });

  it("exceed their given width by at most one text", () => {
    const svg = drawSvg(excerptOf(run("ricart-agrawala", 5, 3, [0, 1, 2, 3, 4], 3)), { width: 700 });
    expect(Number(/ width="(\d+)"/.exec(svg)?.[1])).toBeLessThanOrEqual(900);
  });
});

describe("lanes on a terminal", () => {
  const paint = (_style: string, text: string): string => text;

  it.each([
    ["every-kind", everyKind],
    ["lasso", lasso],
    ["hold-back", holdBack],
  ])("golden: %s", async (name, trace) => {
    const lines = drawLanes(excerptOf(trace), { columns: 100, paint }) ?? [];
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
  });

  it.each(Object.entries(traces))("%s fits in 80 and in 140 columns", (_name, trace) => {
    for (const columns of [80, 140]) {
      const lines = drawLanes(excerptOf(trace), { columns, paint });
      for (const line of lines ?? []) expect([...line].length).toBeLessThanOrEqual(columns);
      expect(lines).not.toBeNull();
    }
  });

  it("are not drawn if there are too many nodes", () => {
    const nodes = Array.from({ length: 30 }, (_, node) => node);
    const trace = traceOf(nodes, [send(0, 0, 29, "a")]);
    expect(drawLanes(excerptOf(trace), { columns: 80, paint })).toBeNull();
    expect(drawLanes(excerptOf(trace), { columns: 140, paint })).not.toBeNull();
  });
});
