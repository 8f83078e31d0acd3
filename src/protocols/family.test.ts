import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tagged, View } from "../core/protocol.ts";
import { digest } from "./digest.ts";
import { consensus, type Emitted, election, type Family, membership, multicast, mutualExclusion } from "./family.ts";
import { protocolNamed, protocolNames, variantNamed } from "./index.ts";
import { multicasts } from "./multicasts.ts";
import { declaredOptions } from "./options.ts";

const says = (at: number, node: number, event: object): Emitted => ({ at, node, event: event as Tagged });
const byPart = (type: string, body: object) => ({ type, body });
const nobody = (): View => ({ role: "none" });
const outcome = (family: Family, events: readonly Emitted[], view = nobody as (node: number) => View) =>
  family.outcome({ alive: [0, 1], events, view });

describe("the outcome of", () => {
  it("an election: the leader that each alive node follows", () => {
    const view = (node: number): View => ({ role: "follower", leader: node === 0 ? 1 : null });
    expect(outcome(election, [], view)).toEqual({ leader: { 0: 1, 1: null } });
    expect(outcome(election, [])).toEqual({ leader: { 0: null, 1: null } });
  });

  it("a mutual exclusion: each use of the section, with its times and its fencing token", () => {
    const events = [
      says(1, 0, byPart("workload", { type: "needed" })),
      says(2, 1, byPart("workload", { type: "needed" })),
      says(5, 0, byPart("mutex", { type: "entered", token: 7 })),
      says(9, 0, byPart("mutex", { type: "exited" })),
      says(10, 0, byPart("workload", { type: "needed" })),
      says(11, 1, byPart("mutex", { type: "entered" })),
    ];
    expect(outcome(mutualExclusion, events)).toEqual({
      entries: [
        { node: 0, requestedAt: 1, enteredAt: 5, exitedAt: 9, token: 7 },
        { node: 1, requestedAt: 2, enteredAt: 11, exitedAt: null, token: null },
        { node: 0, requestedAt: 10, enteredAt: null, exitedAt: null, token: null },
      ],
    });
  });

  it("a multicast: the order of delivery at each node", () => {
    const delivered = (id: string) => byPart("multicast", { type: "delivered", from: 0, payload: "", id });
    const events = [says(1, 1, delivered("0.1")), says(2, 0, delivered("1.1")), says(3, 1, delivered("1.1"))];
    expect(outcome(multicast, events)).toEqual({ delivered: { 0: ["1.1"], 1: ["0.1", "1.1"] } });
  });

  it("a consensus: the decision of each node", () => {
    expect(outcome(consensus, [says(1, 1, { type: "decided", value: "x" })])).toEqual({ decided: { 1: "x" } });
  });

  it("a failure detector: the nodes that are suspected and not restored", () => {
    const events = [
      says(1, 0, { type: "suspected", node: 1 }),
      says(1, 1, { type: "suspected", node: 0 }),
      says(2, 0, { type: "restored", node: 1 }),
    ];
    expect(outcome(membership, events)).toEqual({ suspected: { 0: [], 1: [0] } });
  });
});

describe("the registry", () => {
  it.each(protocolNames)("%s: : the model form accepts the command of its family", (name) => {
    const { family, model } = protocolNamed(name);
    const command = family.ask(0, 1);
    if (family.verb === null) expect(command).toBeNull();
    else expect(Object.keys(model().shapes.command ?? {})).toContain(command?.type);
  });

  it.each(protocolNames.flatMap((name) => Object.keys(protocolNamed(name).variants).map((variant) => [name, variant])))(
    "%s, variant %s: rejects unknown options and accepts the options of its workload",
    (name, variant) => {
      const { family } = protocolNamed(name);
      const { model } = variantNamed(name, variant);
      expect(() => model({ bogus: 1 })).toThrow("bogus");
      if (family.name !== "mutual exclusion") return;
      expect(() => model({ mutex: { bogus: 1 } })).toThrow("bogus");
      expect(() => model({ workload: { stayMs: 0 } })).toThrow(
        "expected workload.stayMs to be a finite number > 0, got 0",
      );
    },
  );

  const forms = protocolNames.flatMap((name) => {
    const { model, node } = protocolNamed(name);
    return [[name, model] as const, [`${name}, on processes`, node] as const];
  });

  it.each(forms)("%s: rejects unknown options, and for each option a wrong type and values out of range", (_, make) => {
    const given = (path: readonly string[], value: unknown) =>
      path.reduceRight<unknown>((inner, part) => ({ [part]: inner }), value) as object;
    for (const { path, name, range } of declaredOptions(make)) {
      const { above, min, below, max } = range;
      const bounds = [above, min === undefined ? above : min - 1, below, max === undefined ? below : max + 1];
      for (const value of [() => {}, ...bounds.filter((bound) => bound !== undefined)])
        expect(() => make(given([...path, name], value))).toThrow(`${name} to be `);
      expect(() => make(given([...path, "bogus"], 1))).toThrow("bogus to be absent");
    }
  });

  it("lists the known names when a name is unknown", () => {
    expect(() => protocolNamed("paxxos")).toThrow(
      /^expected the protocol to be a name listed by `coterie protocols`, /,
    );
    expect(() => variantNamed("bully", "meek")).toThrow(
      'expected the variant to be one of extended, monitored, got "meek"',
    );
    expect(() => variantNamed("heartbeat", "meek")).toThrow(
      'expected the variant to be omitted, since heartbeat has no variants, got "meek"',
    );
    expect(variantNamed("bully", "monitored").model().name).toBe("bully");
  });
});

describe.each(protocolNames)("the registry entry of %s", (name) => {
  const { model, node, variants } = protocolNamed(name);

  it("has the algorithm in every form", () => {
    for (const [variant, form] of Object.entries(variants))
      expect([variant, form.model().name]).toEqual([variant, model().name]);
    expect(node().name).toBe(model().name);
  });
});

const askedForMore = Object.entries(multicasts).filter(([, { variants }]) => Object.hasOwn(variants, "every-order"));

describe.each(askedForMore)("%s, checked for every order", (_name, { model, variants }) => {
  const made = variants["every-order"]?.model();

  it("sends the same messages; only its workload checks more", () => {
    expect(made?.shapes).toEqual(model().shapes);
    const asked = made?.properties.map(({ name }) => name) ?? [];
    expect(asked).toEqual(expect.arrayContaining(model().properties.map(({ name }) => name)));
    for (const order of ["C4 FIFO order", "C5 happened-before order", "C6 total order"])
      expect(asked).toContain(`workload: ${order}`);
  });
});

it("equals the SHA-256 of Node's crypto for any text, including unpaired surrogates", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      expect(digest(text)).toBe(createHash("sha256").update(text).digest("hex"));
    }),
    { examples: [["\ud800"], ["a\udc00b"], [""]] },
  );
});
