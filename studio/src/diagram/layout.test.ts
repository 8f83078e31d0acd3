import { describe, expect, test } from "vitest";
import { Inkwell } from "../../../src/trace/diagram/ink.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, event, receive, send } from "../history/fixtures.ts";
import { svgOf } from "./export.ts";
import type { Frame } from "./frame.ts";
import { layOut } from "./layout.ts";
import { type Letter, widthOf } from "./lettering.ts";
import { lanesOf } from "./spans.ts";

/** A frame of one pixel per millisecond, with rows at y = 50, 150 and 250. */
const frame: Frame = {
  from: 0,
  to: 1_000,
  width: 1_000,
  nodes: [0, 1, 2],
  rowHeight: 100,
  top: 0,
  origin: null,
  still: true,
};

function pictureOf(entries: readonly TraceEntry[], within: Partial<Frame> = {}) {
  return layOut(new Chronicle(clusterOf([2, 2, 2]), entries), { ...frame, ...within });
}

describe("arrows", () => {
  test("run from send to receive, and stop just short of the line", () => {
    const [arrow] = pictureOf([send(100, 0, 2), receive(300, 0, 2, 100)]).arrows;
    expect(arrow).toMatchObject({ fate: "received", start: { x: 100, y: 50 }, end: { x: 300, y: 247 } });
  });

  test("never run back in time, even if the clocks of two processes differ", () => {
    const [arrow] = pictureOf([send(100, 2, 1), receive(99.9, 2, 1, 100)]).arrows;
    expect(arrow).toMatchObject({ start: { x: 100, y: 250 }, end: { x: 100, y: 153 } });
  });

  test("end where a message was lost", () => {
    const lost = (node: number): TraceEntry => ({ at: 120, node, kind: "lost", id: "0>1@100", to: 1, why: "dropped" });
    const [atSender] = pictureOf([send(100, 0, 1), lost(0)]).arrows;
    const [atReceiver] = pictureOf([send(100, 0, 1), lost(1)]).arrows;
    expect(atSender).toMatchObject({ fate: "lost", end: { x: 120, y: 84 } });
    expect(atReceiver).toMatchObject({ fate: "lost", end: { x: 120, y: 134 } });
  });

  test("are stubs without an end or without a beginning", () => {
    const [flying] = pictureOf([send(100, 0, 1)]).arrows;
    const [arriving] = pictureOf([receive(300, 0, 1, 100)]).arrows;
    expect(flying).toMatchObject({ fate: "flying", start: { x: 100, y: 50 }, end: { x: 110, y: 80 } });
    expect(arriving).toMatchObject({ fate: "arriving", end: { x: 300, y: 147 } });
  });

  test("are laid out only if they cross the frame", () => {
    const entries = [send(100, 0, 1), receive(110, 0, 1, 100), send(600, 0, 1), receive(900, 0, 1, 600)];
    const { arrows } = pictureOf(entries, { from: 700, to: 800 });
    expect(arrows.map(({ message }) => message.sentAt)).toEqual([600]);
  });
});

describe("life lines", () => {
  test("are interrupted by a crash, and thick again only after an election", () => {
    const { lines, marks } = pictureOf([
      { at: 200, node: 2, kind: "crash" },
      { at: 500, node: 2, kind: "start" },
      { at: 600, node: 2, kind: "view", view: { role: "leader", leader: 2 }, state: {} },
    ]);
    const own = lines.filter(({ y }) => y === 250).map(({ x1, x2, condition, leads }) => [x1, x2, condition, leads]);
    expect(own).toEqual([
      [0, 200, "running", false],
      [200, 500, "gone", false],
      [500, 600, "running", false],
      [600, 1_000, "running", true],
    ]);
    expect(marks.map(({ shape, x }) => [shape, x])).toEqual([
      ["crash", 200],
      ["start", 500],
    ]);
  });

  test("show the role if there is space", () => {
    const narrow = pictureOf([
      { at: 980, node: 0, kind: "view", view: { role: "campaigning", leader: null }, state: {} },
    ]);
    expect(narrow.lines.filter(({ y }) => y === 50).map(({ role }) => role)).toEqual([null]);
    expect(pictureOf([]).lines.map(({ role }) => role)).toEqual(["follower", "follower", "leader"]);
    expect(pictureOf([], { still: false }).lines.map(({ role }) => role)).toEqual([null, null, null]);
  });
});

describe("thousands of life lines", () => {
  test("are merged if only the role changes and its label does not fit", () => {
    const entries = Array.from({ length: 200 }, (_, index): TraceEntry => {
      const role = index % 2 === 0 ? "holding back" : "up to date";
      return { at: 100 + index, node: 0, kind: "view", view: { role }, state: {} };
    });
    const own = pictureOf(entries).lines.filter(({ y }) => y === 50);
    expect(own.map(({ x1, x2, role }) => [x1, x2, role])).toEqual([
      [0, 299, null],
      [299, 1_000, "up to date"],
    ]);
  });
});

describe("marks", () => {
  test("have labels that overlap nothing, the most important first", () => {
    const { letters } = pictureOf([
      event(100, 0, "detector", { type: "suspected", node: 2 }),
      event(105, 0, "election", { type: "elected", leader: 1 }),
      event(105, 1, "detector", { type: "suspected", node: 2 }),
    ]);
    const said = letters.filter(({ key }) => key.startsWith("mark"));
    expect(said.map(({ text, x, y }) => [text, x, Math.round(y)])).toEqual([
      ["elected 1", 116, 43],
      ["suspected 2", 107, 68],
      ["suspected 2", 116, 143],
    ]);
  });

  test("have labels, as messages do, that neither overlap nor leave the frame, no matter how many there are", () => {
    const entries = Array.from({ length: 90 }, (_, i) => [
      send(i * 11, i % 3, (i + 1) % 3),
      receive(i * 11 + 40, i % 3, (i + 1) % 3, i * 11),
      event(i * 11 + 40, (i + 1) % 3, "mutex", { type: "entered" }),
    ]).flat();
    const { letters, height } = pictureOf(entries);
    const boxes = letters.filter(({ radians }) => radians === 0).map((letter) => boxOf(letter));
    expect(boxes.length).toBeGreaterThan(15);
    for (const [index, box] of boxes.entries()) {
      expect(box.left).toBeGreaterThanOrEqual(0);
      expect(box.right).toBeLessThanOrEqual(1_004);
      expect(box.bottom).toBeLessThanOrEqual(height);
      for (const other of boxes.slice(index + 1))
        expect(
          box.right <= other.left || other.right <= box.left || box.bottom <= other.top || other.bottom <= box.top,
        ).toBe(true);
    }
  });
});

function boxOf({ text, style, x, y }: Letter) {
  const width = widthOf(text, style);
  // Names of messages are centered.
  if (style === "arrow") return { left: x - width / 2, right: x + width / 2, top: y - 5, bottom: y + 5 };
  return { left: x, right: x + width, top: y - 9, bottom: y + 1 };
}

const view = (at: number, node: number, held: readonly string[]): TraceEntry => ({
  at,
  node,
  kind: "view",
  view: { role: "member", held },
  state: {},
});

const delivered = (at: number, node: number, id: string): TraceEntry =>
  event(at, node, "multicast", { type: "delivered", from: 0, payload: "hello", id });

describe("held-back messages", () => {
  test("hang from the life line from receipt to delivery", () => {
    const { tracks } = pictureOf([view(100, 1, ["0.2"]), view(150, 1, ["0.2", "1.1"]), view(400, 1, [])]);
    expect(tracks.map(({ x1, x2, y, lifeY, ends, text }) => ({ x1, x2, y, lifeY, ends, text }))).toEqual([
      { x1: 100, x2: 400, y: 155, lifeY: 150, ends: [100, 400], text: "0.2" },
      { x1: 150, x2: 400, y: 164.5, lifeY: 150, ends: [150, 400], text: "1.1" },
    ]);
    expect(tracks[0]?.title).toBe("0.2 held back at node 1 for 300 ms");
  });

  test("end with the process, reach the edge if still held, and are counted if they do not fit into the row", () => {
    const { tracks } = pictureOf([
      view(100, 0, ["1.2"]),
      { at: 300, node: 0, kind: "crash" },
      view(500, 2, ["0.2", "0.3", "0.4", "0.5", "0.6"]),
    ]);
    expect(tracks.map(({ node, text, x1, x2, isSurplus }) => [node, text, x1, x2, isSurplus])).toEqual([
      [0, "1.2", 100, 300, false],
      [2, "0.2", 500, 1_000, false],
      [2, "0.3", 500, 1_000, false],
      [2, "0.4", 500, 1_000, false],
      [2, "+2", 500, 1_000, true],
    ]);
  });

  test("replace the role", () => {
    const { letters } = pictureOf([view(100, 0, ["1.2"]), view(400, 0, []), view(500, 1, [])]);
    const roles = letters.filter(({ text }) => text === "member");
    expect(roles.map(({ of, y }) => [of, y])).toEqual([[500, 167]]);
  });

  test("show their id if there is space", () => {
    expect(pictureOf([view(100, 1, ["0.2"]), view(110, 1, [])]).tracks.map(({ text }) => text)).toEqual([""]);
  });
});

describe("deliveries", () => {
  test("have their own mark, and name the message", () => {
    const { marks } = pictureOf([event(100, 0, "workload", { type: "said" }), delivered(300, 0, "1.1")]);
    expect(marks.map(({ shape, label }) => [shape, label])).toEqual([
      ["event", "said"],
      ["delivery", "1.1"],
    ]);
  });

  test("are placed next to the command to send, and by the thousand only if they can be distinguished", () => {
    const command: TraceEntry = { at: 100, node: 0, kind: "command", command: { type: "send" } };
    const crowd = Array.from({ length: 50 }, (_, index) => delivered(500 + index / 10, 0, `1.${index}`));
    const { marks } = pictureOf([command, delivered(100, 0, "0.1"), ...crowd]);
    expect(marks.map(({ x }) => x)).toEqual([100, 109, 500, 503]);
    const turns = crowd.flatMap((entry) => [{ ...command, at: entry.at }, entry]);
    expect(pictureOf(turns).marks.map(({ shape, x }) => [shape, Math.round(x)])).toEqual([
      ["command", 500],
      ["delivery", 509],
      ["command", 503],
      ["delivery", 512],
    ]);
  });
});

describe("the drawing stays small", () => {
  test("with any number of marks", () => {
    const kinds = ["granted", "entered", "exited"];
    const many = Array.from({ length: 4_000 }, (_, i) =>
      event(i / 4, i % 3, "mutex", { type: kinds[(i % 7) % 3] ?? "" }),
    );
    const { marks } = pictureOf(many);
    expect(marks.length).toBeGreaterThan(50);
    expect(marks.length).toBeLessThanOrEqual(400);
  });

  test("keeps samples of a hundred thousand messages, one per group of overlapping ones", () => {
    const messages = Array.from({ length: 100_000 }, (_, i) => ({
      id: String(i),
      name: { full: "m", short: "m", part: null },
      from: i % 3,
      to: (i + 1) % 3,
      content: { type: "m" },
      sentAt: i / 100,
      receivedAt: i / 100 + 5,
      loss: null,
    }));
    const { arrows, crowd, letters } = layOut({ messages, marks: [], lives: new Map(), networks: [] }, frame);
    expect(crowd?.count).toBe(100_000);
    expect(arrows.length).toBeGreaterThan(300);
    expect(arrows.length).toBeLessThanOrEqual(700);
    expect(letters).toEqual([]);
  });

  test("thins out thousands of role changes, but keeps the leaders", () => {
    const entries = Array.from({ length: 6_000 }, (_, i): TraceEntry => {
      const leader = i === 1_000 || i === 1_001 ? 0 : 2;
      return { at: i / 10, node: 0, kind: "view", view: { role: i % 2 === 0 ? "a" : "b", leader }, state: {} };
    });
    const life = new Chronicle(clusterOf([2, 2, 2]), entries).lives.get(0);
    expect(life?.stretches().length).toBeLessThan(1_300);
    expect(
      life
        ?.stretches()
        .filter(({ leads }) => leads)
        .map(({ from }) => from),
    ).toEqual([100]);
  });
});

describe("spans", () => {
  test("show when the network was split and lossy, until it was mended", () => {
    const calm = clusterOf([2, 2, 2]);
    const cuts = [0, 1].flatMap((node) => [[node, 2] as const, [2, node] as const]);
    const split = { ...calm, network: { ...calm.network, cuts }, networkSince: 300 };
    const lossy = { ...calm, network: { ...calm.network, dropRate: 0.2 }, networkSince: 600 };
    const chronicle = new Chronicle({ ...calm, networkSince: 0 }, []);
    chronicle.observe(split, { ...calm, networkSince: 0 });
    chronicle.observe(lossy, split);
    chronicle.observe({ ...calm, networkSince: 640 }, lossy);
    const { spans } = layOut(chronicle, frame);
    expect(spans.map(({ x1, x2, title, text }) => [x1, x2, title, text])).toEqual([
      [300, 600, "split: 0 and 1 | 2", "split: 0 and 1 | 2"],
      [600, 640, "20 % of the messages dropped", "20 …"],
    ]);
    expect(layOut(chronicle, { ...frame, from: 700, to: 800 }).spans).toEqual([]);
  });

  test("show each fault once, for as long as it lasts, and stack concurrent faults", () => {
    const networks = [
      { since: 0, words: "20 % of the messages dropped" },
      { since: 200, words: "20 % of the messages dropped; split: 0 | 1, 2" },
      { since: 400, words: "split: 0 | 1, 2; 0 → 1: 100 ms of delay" },
      { since: 600, words: "" },
    ];
    const { spans } = layOut({ messages: [], marks: [], lives: new Map(), networks }, { ...frame, top: 38 });
    // The first row is at y = 88, and the spans are above it.
    expect(spans.map(({ kind, x1, x2, y }) => [kind, x1, x2, y])).toEqual([
      ["loss", 0, 400, 19],
      ["cut", 200, 600, 34],
      ["delay", 400, 600, 19],
    ]);
    expect(lanesOf(networks, frame.nodes)).toBe(2);
  });

  test("are exported to a file as on the screen, pauses too", () => {
    const networks = [{ since: 100, words: "20 % of the messages dropped; 10 to 50 ms of delay" }];
    const stretch = { from: 0, to: Number.POSITIVE_INFINITY, condition: "paused", leads: false, role: "idle" } as const;
    const lives = new Map([[0, { holdBack: { tracks: () => [] }, stretches: () => [stretch] }]]);
    const picture = layOut({ messages: [], marks: [], lives, networks }, { ...frame, still: true });
    const svg = svgOf(
      { picture, related: null, dimmed: 1, title: "run", unit: "ms", namesPx: 60, nameOf: (node) => `node ${node}` },
      { theme: (name: string) => name, inkOf: () => new Inkwell({}).of("m") },
    );
    expect(svg).toContain("20 % of the messages dropped");
    expect(svg).toContain("10 to 50 ms of delay");
    expect(svg).toContain('stroke-dasharray="9 4"');
    expect(svg).toContain(">paused<");
  });

  test("reach the edge if the fault still lasts", () => {
    const calm = { ...clusterOf([2, 2, 2]), networkSince: 0 };
    const slow = { ...calm, network: { ...calm.network, delayMs: [10, 50] as const }, networkSince: 900 };
    const chronicle = new Chronicle(calm, []);
    chronicle.observe(slow, calm);
    const { spans } = layOut(chronicle, frame);
    expect(spans.map(({ x1, x2, title }) => [x1, x2, title])).toEqual([[900, 1_000, "10 to 50 ms of delay"]]);
  });
});
