/** Bugs in the generals, FloodSet and lockstep, which work in rounds. Some need a Byzantine node to show. */

import type { Tagged } from "../../src/core/protocol.ts";
import { idealSignatures, type Signed, sign } from "../../src/core/signatures.ts";
import type { ByzantineBehaviour } from "../../src/protocols/byzantine.ts";
import { commitmentShape, type Opening, openingShape } from "../../src/protocols/consensus/lockstep/vocabulary.ts";
import { foundBy, type SeededBug, type Subject } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";

const ORAL = "src/protocols/consensus/byzantine-generals/byzantine-generals.ts";
const SIGNED = "src/protocols/consensus/byzantine-generals/signed-messages.ts";
const FLOOD = "src/protocols/consensus/flood-set.ts";
const LOCKSTEP = "src/protocols/consensus/lockstep/lockstep.ts";
const WORDS = "src/protocols/consensus/lockstep/vocabulary.ts";

// Byzantine nodes modify the messages of their algorithm.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
const lying = (lies: (message: Any) => readonly object[]): ByzantineBehaviour => ({
  lie: (_to, message) => [message, ...lies(message)] as Tagged[],
});
const CHEAT = 2;
const asCheat = { self: CHEAT, signatures: idealSignatures(CHEAT) };

export const liars = {
  /** Passes on its message, a different order, or an order that it claims to have received from node 1. */
  lieutenant: lying((message) => [
    { ...message, order: "retreat" },
    { ...message, path: [0, 1], order: "retreat" },
  ]),
  /** Passes on its message, or an order that the commander has not signed. */
  forger: lying(({ type, statements }) => [
    {
      type,
      statements: statements.map((each: Signed<Any>) => ({ ...each, value: { ...each.value, order: "retreat" } })),
    },
  ]),
  committer: lying(({ type, statement }) => {
    if (type !== "commit") return [];
    const { game, turn } = statement.value;
    const another = sign(asCheat, commitmentShape, { game, turn, hash: "another" });
    return [
      { type, statement: another },
      { type: "missing", turn, due: "commit", from: [] },
    ];
  }),
  /** Sends its echo, or a meaningless message instead. */
  hider: lying(({ type, turn }) => (type === "echo" ? [{ type: "missing", turn, due: "commit", from: [] }] : [])),
  revealer: lying(({ type, statement }) => {
    if (type !== "reveal") return [];
    const { value } = statement as Signed<Opening>;
    return [{ type, statement: sign(asCheat, openingShape, { ...value, action: "what wins" }) }];
  }),
} as const;

const rounds = {
  network: "fifo",
  timers: "rounds",
  begin: "together",
  crashes: 0,
  recoveries: 0,
  duplications: 0,
  asks: {},
} as const;
const order = [{ type: "propose", value: "attack" }];

export const agreementSettings: Readonly<Record<string, Setting>> = {
  "an order among four": { ...rounds, summary: "4 generals, 0 gives an order", nodes: 4, asks: { 0: order } },
  "an order among three": { ...rounds, summary: "3 generals, 0 gives an order", nodes: 3, asks: { 0: order } },
  "three values and a crash": {
    ...rounds,
    summary: "3 nodes with a value each; one crashes, perhaps in the middle of a broadcast",
    nodes: 3,
    crashes: 1,
    withinStep: true,
  },
  "a turn of two": { ...rounds, summary: "2 players, one turn", nodes: 2 },
  "a turn of two with late messages": {
    ...rounds,
    summary: "2 players, one turn; deadlines may pass at any time. Only safety is checked",
    nodes: 2,
    timers: "free",
    safetyOnly: true,
  },
  "a turn of three": { ...rounds, summary: "3 players, one turn", nodes: 3 },
};

type Bug = Omit<SeededBug, "protocol" | "file">;

const inFile = (protocol: Subject, file: string, bugs: readonly Bug[]): SeededBug[] =>
  bugs.map((bug) => ({ ...bug, protocol, file }));

export const agreementBugs: readonly SeededBug[] = [
  ...inFile("generals, the commander is Byzantine", ORAL, [
    {
      name: "one-round-short",
      summary: "the generals decide when the first round is over: m rounds for m traitors",
      find: `toleratedByzantine(generals)) + 1;`,
      replace: `toleratedByzantine(generals)) + 0;`,
      ...foundBy("bfs", "an order among four", "IC1 agreement"),
    },
    {
      name: "heard-alone",
      summary: "a lieutenant obeys only the orders it received itself and ignores the reports of others",
      find: `    const own = heardBy(state, path);\n    if (path.length === rounds(ctx)) return own;`,
      replace: `    const own = heardBy(state, path);\n    if (path.length <= rounds(ctx)) return own;`,
      ...foundBy("bfs", "an order among four", "IC1 agreement"),
    },
    {
      name: "late-path-counts",
      summary: "an order that was due in an earlier round still counts, even if no node relayed it",
      find: `if (isLate(state, path) || !isPath(`,
      replace: `if (!isPath(`,
      ...foundBy("bfs", "an order among four", "IC1 agreement"),
    },
  ]),
  ...inFile("generals, a lieutenant is Byzantine", ORAL, [
    {
      name: "sender-unchecked",
      summary: "an order counts for the path it names, no matter which node sent it",
      find: `  path.at(-1) === from &&\n`,
      replace: ``,
      ...foundBy("bfs", "an order among four", "IC1 agreement"),
    },
  ]),
  ...inFile("signed generals, the commander is Byzantine", SIGNED, [
    {
      name: "late-order-counts",
      summary: "an order that was due in an earlier round still counts",
      find: `if (statements.length < state.round) return; // Withheld: it was due in an earlier round.`,
      replace: ``,
      ...foundBy("bfs", "an order among three", "IC1 agreement"),
    },
    {
      name: "first-of-two",
      summary: "a lieutenant obeys the first of two orders, though two orders prove that the commander is a traitor",
      find: `(orders.length === 1 ? (orders[0]?.order as string) : missing)`,
      replace: `orders[0]?.order ?? missing`,
      ...foundBy("bfs", "an order among three", "IC1 agreement"),
    },
  ]),
  ...inFile("signed generals, a lieutenant is Byzantine", SIGNED, [
    {
      name: "signatures-unverified",
      summary: "signatures are not verified, so any node can forge an order",
      find: `isGenuine(ctx, signedStatement, statement)`,
      replace: `statement.signature !== null`,
      ...foundBy("bfs", "an order among three", "IC2 validity"),
    },
  ]),
  ...inFile("flood-set", FLOOD, [
    {
      name: "f-rounds",
      summary: "f rounds instead of f + 1",
      find: `options.rounds === "f" ? f : f + 1`,
      replace: `options.rounds === "f" ? f : Math.max(1, f)`,
      ...foundBy("bfs", "three values and a crash", "agreement"),
    },
    {
      name: "own-value-again",
      summary: "in later rounds a node sends its own value again instead of the values it received",
      find: `values: state.values });`,
      replace: `values: state.proposed === null ? [] : [state.proposed] });`,
      ...foundBy("bfs", "three values and a crash", "agreement"),
    },
    {
      name: "first-heard",
      summary: "a node keeps values in arrival order and decides the first",
      find: `[...new Set([...one, ...other])].sort().slice(`,
      replace: `[...new Set([...one, ...other])].slice(`,
      ...foundBy("bfs", "three values and a crash", "agreement"),
    },
  ]),
  ...inFile("lockstep of two", WORDS, [
    {
      name: "nonce-left-out",
      summary:
        "the hash covers neither the player nor a nonce: two players with the same action have the same commitment, and one seems to have copied it",
      find: `canonical([value.game, value.turn, by, value.nonce, value.action])`,
      replace: `canonical([value.game, value.turn, value.action])`,
      ...foundBy("bfs", "a turn of two", "accuracy"),
    },
  ]),
  ...inFile("lockstep of two", LOCKSTEP, [
    {
      name: "reveal-after-deadline",
      summary: "a player continues after the deadline: a late reveal still counts",
      find: `    state.phase = "over";\n    ctx.emit({ type: "stopped"`,
      replace: `    ctx.emit({ type: "stopped"`,
      ...foundBy("bfs", "a turn of two with late messages", "deadlines"),
    },
  ]),
  ...inFile("lockstep of three", LOCKSTEP, [
    {
      name: "one-echo-short",
      summary: "a player reveals its action when one echo is still missing",
      find: `if (state.phase === "echoing" && missing(state, ctx).length === 0)`,
      replace: `if (state.phase === "echoing" && missing(state, ctx).length <= 1)`,
      ...foundBy("bfs", "a turn of three", "no look-ahead"),
    },
  ]),
  ...inFile("lockstep, a player commits twice", LOCKSTEP, [
    {
      name: "echo-not-compared",
      summary: "an echo counts no matter which commitments it shows",
      find: `for (const statement of statements) takeCommitment(state, statement, ctx);
        if (!state.echoed.includes(from) && showsAll(state, statements, ctx))`,
      replace: `if (statements.length > 0 && !state.echoed.includes(from))`,
      ...foundBy("bfs", "a turn of three", "no look-ahead"),
    },
  ]),
  ...inFile("lockstep, a player withholds its action", LOCKSTEP, [
    {
      name: "equal-deadlines",
      summary:
        "deadlines are equally long in all phases: a player that stops reports it after the others have stopped listening",
      find: `{ committing: 1, echoing: 2, revealing: 3 }`,
      replace: `{ committing: 1, echoing: 1, revealing: 1 }`,
      ...foundBy("bfs", "a turn of three", "accuracy"),
    },
  ]),
  ...inFile("lockstep, a player reveals another action", WORDS, [
    {
      name: "hash-not-bound",
      summary: "the hash covers the nonce but not the action, so any action opens it",
      find: `by, value.nonce, value.action]`,
      replace: `by, value.nonce]`,
      ...foundBy("bfs", "a turn of three", "agreement"),
    },
  ]),
  ...inFile("lockstep, a player reveals another action", LOCKSTEP, [
    {
      name: "reveal-not-compared",
      summary: "a revealed action is not compared with the player's commitment",
      find: `if (isItsOwn && !isOpened) prove({ type: "wrong-reveal", commitment, opening }, state, ctx);`,
      replace: ``,
      ...foundBy("bfs", "a turn of three", "agreement"),
    },
  ]),
];
