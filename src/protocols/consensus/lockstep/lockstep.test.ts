import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { explore } from "../../../check/explore.ts";
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { idealSignatures, sign } from "../../../core/signatures.ts";
import { type Delay, simulation } from "../../../sim/index.ts";
import { logLine } from "../../../trace/log.ts";
import { type ByzantineBehaviour, byzantine } from "../../byzantine.ts";
import { lockstep } from "./lockstep.ts";
import { type Table, verdictOn } from "./proofs.ts";
import type { LockstepOptions } from "./vocabulary.ts";
import {
  commitmentShape,
  complaintShape,
  hashOf,
  type Lockstep,
  openingShape,
  type Phase,
  type Proof,
} from "./vocabulary.ts";

const range = (nodes: number): number[] => Array.from({ length: nodes }, (_, id) => id);
const as = (self: NodeId) => ({ self, signatures: idealSignatures(self) });
type Message = Lockstep["message"];
/** A meaningless message. */
const nothing = (turn: number): Message => ({ type: "missing", turn, due: "commit", from: [] });

interface Setting {
  readonly options?: Partial<LockstepOptions>;
  readonly liars?: Record<NodeId, ByzantineBehaviour>;
  readonly delayMs?: Delay;
  readonly loss?: number;
  readonly seed?: number;
  readonly turns?: number;
  readonly actions?: (node: NodeId, turn: number) => string;
}

function run(nodes: number, { options = {}, liars = {}, delayMs = 10, loss = 0, seed = 1, ...more }: Setting = {}) {
  const { turns = 1, actions = (node, turn) => `move ${node} ${turn}` } = more;
  const log: string[] = [];
  const sim = simulation<Lockstep>({
    protocol: lockstep(options),
    nodes: range(nodes),
    seed,
    delayMs,
    link: { lossRate: loss },
    byzantine: new Map(Object.entries(liars).map(([id, how]) => [Number(id), how])),
    trace: (entry) => log.push(logLine(entry)),
  });
  for (const node of range(nodes)) sim.start(node);
  for (const node of range(nodes))
    for (let turn = 1; turn <= turns; turn++) sim.command(node, { type: "propose", value: actions(node, turn) });
  sim.run();
  const states = range(nodes).map((node) => sim.world.state(node));
  return { sim, log: `${log.join("\n")}\n`, states };
}

/** Returns the other players' convictions of a cheat, with the verdict of a third party that knows the players. */
function proofsIn(states: readonly Lockstep["state"][], cheat: NodeId): { how: string[]; culprits: (NodeId | null)[] } {
  const table: Table = { game: "game", players: states.map((_, id) => id), signatures: idealSignatures(99) };
  const proofs = states.flatMap(({ convicted }, node) => (node === cheat ? [] : (convicted[cheat] ?? [])));
  const asRead = proofs.map((proof) => JSON.parse(JSON.stringify(proof)) as Proof);
  return { how: proofs.map(({ type }) => type), culprits: asRead.map((proof) => verdictOn(proof, table).culprit) };
}

const complaint = (by: NodeId, player = 2, turn = 1, due: Phase = "reveal") =>
  sign(as(by), complaintShape, { game: "game", turn, player, due });
/** Replaces one statement by a different one, signed by the cheat itself. */
const opening = (by: NodeId, turn: number, action: string) =>
  sign(as(by), openingShape, { game: "game", turn, nonce: "my nonce", action });
const commitment = (by: NodeId, turn: number, hash: string) =>
  sign(as(by), commitmentShape, { game: "game", turn, hash });
const cheating = (how: (to: NodeId, message: Message) => readonly Message[]): ByzantineBehaviour => ({
  lie: (to, message) => how(to, message as Message),
});
const wrongReveal = cheating((_to, message) =>
  message.type === "reveal"
    ? [{ ...message, statement: opening(2, message.statement.value.turn, "what wins") }]
    : [message],
);
const silentAbout = (...types: Message["type"][]): ByzantineBehaviour =>
  cheating((_to, message) => (types.includes(message.type) ? [] : [message]));
const another = commitment(2, 1, hashOf(opening(2, 1, "what wins")));
const equivocating = cheating((to, message) =>
  message.type === "commit" && to === 1 ? [{ type: "commit", statement: another }] : [message],
);
/** Opens to each player the commitment that it received. Without echoes no player notices. */
const divided = cheating((to, message) => {
  if (to === 0) return [message];
  if (message.type === "commit") return [{ type: "commit", statement: another }];
  return message.type === "reveal" ? [{ type: "reveal", statement: opening(2, 1, "what wins") }] : [message];
});

describe("turns", () => {
  it("convict a player that reveals a different action than it committed to (story)", async () => {
    const { log } = run(3, { liars: { 2: wrongReveal } });
    await expect(log).toMatchFileSnapshot("stories/lockstep-wrong-reveal.txt");
  });

  it.each([1, 2, 3, 4, 5, 7, 10])("cost 2N(N − 1) with %i players, and 3N(N − 1) with echoes", (nodes) => {
    for (const [echoes, each] of [
      [false, 2],
      [true, 3],
    ] as const) {
      // biome-ignore format: short
      const protocol = lockstep({ echoes });
      const { sim } = run(nodes, { options: { echoes } });
      expect(sim.messages.total).toBe(each * nodes * (nodes - 1));
      expect(protocol.costs[0]?.messages(nodes)).toBe(sim.messages.total);
      expect(sim.verdict()).toEqual([]);
    }
  });

  it("are settled one after the other, with the same actions at all players", () => {
    const { states, sim } = run(4, { options: { echoes: true }, turns: 5, delayMs: [1, 9] });
    expect(states.map(({ turn, phase }) => [turn, phase])).toEqual(range(4).map(() => [5, "waiting"]));
    const last = range(4).map((node) => sim.events(node).at(-1));
    const value = "0: move 0 5, 1: move 1 5, 2: move 2 5, 3: move 3 5";
    const actions = { 0: "move 0 5", 1: "move 1 5", 2: "move 2 5", 3: "move 3 5" };
    expect(last).toEqual(range(4).map(() => ({ type: "decided", turn: 5, actions, value })));
  });

  it("no message before the reveal discloses a player's action", () => {
    const sent = range(2).map((at) => {
      const { log } = run(3, { actions: (node) => (node === 0 ? ["rock", "paper"][at] : "paper") as string });
      return log.split("\n").filter((line) => line.includes("node 0  sends commit"));
    });
    expect(sent[0]).toHaveLength(2);
    expect(sent[0]).not.toEqual(sent[1]);
    expect(sent.flat().join()).not.toMatch(/rock|paper/);
  });

  it("the others give up on a silent player at the deadline, with a proof", () => {
    const sim = simulation<Lockstep>({ protocol: lockstep(), nodes: range(3), seed: 1, delayMs: 10 });
    for (const node of range(3)) sim.start(node);
    for (const node of [0, 1]) sim.command(node, { type: "propose", value: "paper" });
    sim.run();
    const states = range(3).map((node) => sim.world.state(node));
    expect(proofsIn(states, 2)).toEqual({ how: ["silence", "silence"], culprits: [2, 2] });
    expect(sim.now).toBeLessThan(1_100);
  });
});

describe("every cheat is caught, with a proof that a third party verifies", () => {
  it.each<[string, ByzantineBehaviour, string, boolean]>([
    [
      "look-ahead: it keeps its commitment back to see the others' actions first",
      silentAbout("commit"),
      "silence",
      false,
    ],
    ["look-ahead: it reveals a winning action once it knows the others", wrongReveal, "wrong-reveal", false],
    ["a wrong reveal, with echoes", wrongReveal, "wrong-reveal", true],
    ["silence: it never reveals", silentAbout("reveal"), "silence", false],
    ["silence: it never echoes", silentAbout("echo"), "silence", true],
    ["equivocation: another commitment for one of them", equivocating, "equivocation", true],
  ])("%s", (_what, liar, how, echoes) => {
    const { states, sim } = run(3, { liars: { 2: liar }, options: { echoes } });
    expect(proofsIn(states, 2)).toEqual({ how: [how, how], culprits: [2, 2] });
    expect(sim.verdict()).toEqual([]);
  });

  it("a player that withholds its commitment sees no other action", () => {
    for (const echoes of [false, true]) {
      const { log } = run(3, { liars: { 2: silentAbout("commit", "echo") }, options: { echoes } });
      expect(log).toContain("emits stopped");
      expect(log).not.toMatch(/node [01] {2}sends reveal/);
    }
  });

  it("replay: its own commitment of the previous turn", () => {
    let first = "";
    const replaying = cheating((_to, message) => {
      if (message.type !== "commit") return [message];
      const { turn, hash } = message.statement.value;
      if (turn === 1) first = hash;
      return [{ type: "commit", statement: commitment(2, turn, first) }];
    });
    const { states, sim } = run(3, { liars: { 2: replaying }, turns: 2 });
    expect(proofsIn(states, 2)).toEqual({ how: ["replay", "replay"], culprits: [2, 2] });
    expect(sim.verdict()).toEqual([]);
  });

  it("replay: another player's commitment, sent as its own", () => {
    let copied = "";
    const copying = cheating((_to, message) => {
      if (message.type === "commit") return [{ type: "commit", statement: commitment(2, 1, copied) }];
      return message.type === "reveal" ? [] : [message];
    });
    const sim = simulation<Lockstep>({
      protocol: lockstep(),
      nodes: range(3),
      seed: 1,
      delayMs: 10,
      byzantine: new Map([[2, copying]]),
    });
    for (const node of range(3)) sim.start(node);
    for (const node of [0, 1]) sim.command(node, { type: "propose", value: "paper" });
    sim.run(20);
    copied = sim.world.state(2).early[0]?.value.hash as string;
    sim.command(2, { type: "propose", value: "anything" });
    sim.run();
    const states = range(3).map((node) => sim.world.state(node));
    expect(proofsIn(states, 2)).toEqual({ how: ["replay", "replay"], culprits: [2, 2] });
  });

  it("silence between two players proves nothing against either: the game ends without a conviction", () => {
    const { states, sim } = run(2, { liars: { 1: silentAbout("reveal") } });
    expect(states[0]).toMatchObject({ phase: "over", convicted: {} });
    expect(Object.keys(states[0]?.stopped ?? {})).toEqual(["0"]);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("nothing else is a proof", () => {
  const table: Table = { game: "game", players: [0, 1, 2], signatures: idealSignatures(7) };
  const right = opening(2, 1, "paper");
  const bound = commitment(2, 1, hashOf(right));

  it.each<[string, Proof, string]>([
    ["a right reveal", { type: "wrong-reveal", commitment: bound, opening: right }, "matches its commitment"],
    [
      "a reveal of another turn",
      { type: "wrong-reveal", commitment: bound, opening: opening(2, 2, "rock") },
      "not from the same player and turn",
    ],
    ["one commitment twice", { type: "equivocation", one: bound, other: bound }, "are identical"],
    [
      "commitments of two turns",
      { type: "equivocation", one: bound, other: commitment(2, 2, "h") },
      "not from the same player and turn",
    ],
    ["its own commitment, opened", { type: "replay", commitment: bound, opening: right }, "is the player's own"],
    [
      "another's reveal",
      { type: "replay", commitment: bound, opening: opening(1, 1, "paper") },
      "does not match the revealed action",
    ],
    [
      "one complaint of three",
      { type: "silence", complaints: [complaint(0)] },
      "expected complaints from at least 2 of 3 players, got 1",
    ],
    ["a complaint twice", { type: "silence", complaints: [complaint(0), complaint(0)] }, "of 3 players, got 1"],
    ["its own complaint", { type: "silence", complaints: [complaint(0), complaint(2)] }, "of 3 players, got 1"],
    ["no complaint", { type: "silence", complaints: [] }, "the proof contains no complaints"],
    [
      "complaints about two turns",
      { type: "silence", complaints: [complaint(0), complaint(1, 2, 2)] },
      "not about the same player, turn and message",
    ],
    ["complaints on a stranger", { type: "silence", complaints: [complaint(0, 9), complaint(1, 9)] }, "not a player"],
    [
      "a forged signature",
      { type: "wrong-reveal", commitment: bound, opening: { ...opening(1, 1, "rock"), by: 2 } },
      "the statement is not signed by player 2",
    ],
    [
      "another game",
      { type: "equivocation", one: bound, other: sign(as(2), commitmentShape, { game: "x", turn: 1, hash: "" }) },
      'belongs to the game "x"',
    ],
    [
      "a stranger",
      { type: "equivocation", one: commitment(9, 1, "a"), other: commitment(9, 1, "b") },
      "is not a player",
    ],
  ])("%s", (_what, proof, why) => {
    const verdict = verdictOn(proof, table);
    expect(verdict.culprit).toBeNull();
    expect(verdict.why).toContain(why);
  });

  it("and players ignore it", () => {
    const slander = cheating((to, message) =>
      message.type === "commit"
        ? [{ type: "accuse", proof: { type: "silence", complaints: [complaint(2, 1 - to)] } }]
        : [message],
    );
    const { states, sim } = run(3, { liars: { 2: slander } });
    expect(states.slice(0, 2).map(({ convicted }) => Object.keys(convicted))).toEqual([["2"], ["2"]]);
    expect(sim.verdict()).toEqual([]);
  });
});

const bounded: Partial<LockstepOptions> = { echoes: true, moves: ["rock", "paper"], turns: 1, resends: 0 };

function explored(
  options: Partial<LockstepOptions>,
  liars: Record<NodeId, ByzantineBehaviour> = {},
  more: object = {},
) {
  const map = new Map(Object.entries(liars).map(([id, how]) => [Number(id), how]));
  const protocol: Protocol<Lockstep> = byzantine(lockstep({ ...bounded, ...options }), map);
  return explore({ protocol, nodes: range(3), network: "fifo", timers: "rounds", begin: "together", ...more });
}

/**
 * Sends each receiver a different wrong message, or none, when one is due. The cheat may invent anything that it signs.
 */
const cheatingAt = (...types: Message["type"][]): ByzantineBehaviour =>
  cheating((_to, message) => {
    if (!types.includes(message.type)) return [message];
    switch (message.type) {
      case "commit":
        return [message, { type: "commit", statement: another }, nothing(1)];
      case "echo":
        return [
          message,
          { ...message, statements: message.statements.map((each) => (each.by === 2 ? another : each)) },
          nothing(1),
        ];
      case "reveal":
        return [message, { type: "reveal", statement: opening(2, 1, "what wins") }, nothing(1)];
      default:
        return [message];
    }
  });

describe("every run of one turn of three players", () => {
  const rock = { moves: ["rock"] };

  it("holds if all are honest, and if one crashes, even in the middle of a step", () => {
    expect(reaching(explored(rock), "decided")).toMatchObject({ verdict: "holds", states: 1_469 });
    const crashes = { crashes: 1, withinStep: true };
    expect(reaching(explored(rock, {}, crashes), "decided", "stopped", "cheated")).toMatchObject({ verdict: "holds" });
    expect(explored(rock, { 2: "mute" })).toMatchObject({ verdict: "holds" });
  });

  it("holds for all actions", { tags: ["long"] }, () => {
    expect(explored({})).toMatchObject({ verdict: "holds", states: 11_735 });
  });

  it("without echoes, a player that equivocates sees other actions first, and divides the players", () => {
    const plain = { ...rock, echoes: false };
    const found = explored(plain, { 2: cheatingAt("commit") });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "no look-ahead" } });
    const { sim } = run(3, { liars: { 2: divided } });
    expect(sim.verdict().map(({ property }) => property)).toEqual(["no look-ahead", "agreement"]);
  });

  // Players that wait for a stopped player learn of it before their own deadline. With equal deadlines, they would be
  // convicted.
  it.each([
    [["commit"], 20_529],
    [["echo"], 49_084],
    [["reveal"], 106_585],
    [["commit", "echo"], 144_258],
    [["commit", "reveal"], 175_471],
  ] as const)("with echoes, holds for all messages of a cheat of the types %o", { tags: ["long"] }, (types, states) => {
    const found = reaching(explored(rock, { 2: cheatingAt(...types) }), "cheated", "decided");
    expect(found).toMatchObject({ verdict: "holds", states });
  });
});

describe("loss and delay within the deadline", () => {
  /**
   * Runs honest players over links that lose and delay messages. A deadline is ten times the interval between requests
   * for missing messages.
   */
  function honestRun(seed: number): { settled: number; lost: number } {
    const nodes = 2 + (seed % 3);
    const sim = simulation<Lockstep>({
      protocol: lockstep({ echoes: seed % 2 === 0 }),
      nodes: range(nodes),
      seed,
      delayMs: [1, 60],
      link: { lossRate: 0.15 },
    });
    for (const node of range(nodes)) sim.start(node);
    for (const node of range(nodes))
      for (const value of ["rock", "paper"]) sim.command(node, { type: "propose", value });
    sim.run();
    expect(sim.verdict()).toEqual([]);
    const states = range(nodes).map((node) => sim.world.state(node));
    for (const { convicted } of states) expect(convicted).toEqual({});
    return {
      settled: states.filter(({ phase, turn }) => phase === "waiting" && turn === 2).length / nodes,
      lost: sim.lost,
    };
  }
  const runs = (count: number, from: number) => {
    const all = Array.from({ length: count }, (_, at) => honestRun(from + at));
    expect(all.some(({ lost }) => lost > 0)).toBe(true);
    return all.filter(({ settled }) => settled < 1).length;
  };

  it("in 60 runs accuse no player, and every turn is settled", () => {
    expect(runs(60, 1)).toBe(0);
  });

  it("in 2,000 runs accuse no player, and every turn is settled", { tags: ["larger"] }, () => {
    expect(runs(2_000, 1_000)).toBe(0);
  });

  it("delay beyond the deadline gets honest players accused: deadlines are an assumption", () => {
    const found = Array.from({ length: 20 }, (_, seed) => run(3, { delayMs: [1, 4_000], seed }).sim.verdict());
    expect(found.flat().map(({ property }) => property)).toContain("accuracy");
  });

  it("a Byzantine majority can convict any player", () => {
    const against2 = (by: NodeId): ByzantineBehaviour =>
      cheating((_to, message) =>
        message.type === "commit" ? [{ type: "complain", statement: complaint(by, 2, 1, "commit") }] : [message],
      );
    const { states, sim } = run(3, { liars: { 0: against2(0), 1: against2(1) } });
    expect(states[2]?.convicted).toHaveProperty("2");
    expect(sim.verdict().map(({ property }) => property)).toEqual(["accuracy"]);
  });
});
