/**
 * The schema of scenarios. A scenario is data: nodes, protocol, network, timed steps and the expected result. Files, the command
 * line and editors all use these descriptions.
 */
import { z } from "zod";
import { UsageError, unexpected } from "../../core/errors.ts";
import { behaviours } from "../../protocols/byzantine.ts";
import { protocolNames } from "../../protocols/index.ts";

const MAX_NODES = 10_000_000;
const MAX_SEED = 2 ** 32 - 1;

const A_COUNT = `a number of nodes from 1 to ${MAX_NODES}, or a list of ids`;
const A_NAME = 'present, such as "The next one crashes too"';
const A_NODE = "a node's id: 0, 1, 2 …";
const A_LIST = "a list of node ids";
const A_TIME = "a time in milliseconds, 0 or more";

const node = z.int(A_NODE).min(0, A_NODE);
const nodeList = z.array(node, A_LIST);
const nodes = z.union(
  [node, nodeList.min(1, "at least one node"), z.literal("all")],
  'a node, a list of nodes or "all"',
);
const milliseconds = z.number(A_TIME).min(0, A_TIME);
const word = z.string("a word").min(1, "a word");
const whole = z.int("a whole number of 0 or more").min(0, "a whole number of 0 or more");
const rate = z.number("a rate from 0 to 1").min(0, "a rate from 0 to 1").max(1, "a rate from 0 to 1");
const nodeKey = z.string().regex(/^(0|[1-9]\d*)$/, A_NODE);
const messageKey = z.string().regex(/^\d+\.[1-9]\d*(@\d+)?$/, "a sender and a count from 1, such as 0.1");
const fields = z.record(z.string(), z.unknown(), "an object");

/** One value for every alive node, or one value per node id. */
function byNode<T extends z.ZodType>(value: T, expected: string) {
  return z.union([value, z.record(nodeKey, value, `${expected}, or an object from node to that`)], {
    error: `${expected}, or an object from node to that`,
  });
}

const delay = z
  .union(
    [
      milliseconds,
      z
        .tuple([milliseconds, milliseconds], "[least, most] in milliseconds")
        .refine(([least, most]) => least <= most, "[least, most] with least <= most"),
      z.strictObject({ normal: z.strictObject({ meanMs: milliseconds, deviationMs: milliseconds }, "an object") }),
      z.strictObject({ logNormal: z.strictObject({ medianMs: milliseconds, sigma: milliseconds }, "an object") }),
    ],
    "milliseconds, [least, most], { normal: { meanMs, deviationMs } } or { logNormal: { medianMs, sigma } }",
  )
  .describe("Milliseconds: constant, [least, most], normal (cut at 0) or log-normal.");

const linkConditions = {
  delayMs: delay.exactOptional(),
  lossRate: rate.exactOptional().describe("Fraction of lost messages, from 0 to 1."),
  duplicateRate: rate.exactOptional().describe("Fraction of duplicated messages, from 0 to 1."),
  order: z
    .enum(["fifo", "none"], "fifo or none")
    .exactOptional()
    .describe("fifo: messages of one link arrive in the order of sending. none: in any order."),
  bytesPerMs: z.number("bytes per millisecond").positive("above 0").exactOptional().describe("Bandwidth of a link."),
};

const network = z
  .strictObject(
    {
      ...linkConditions,
      processingMs: delay.exactOptional().describe("How long a node is busy with one message; others wait in order."),
      syncMs: milliseconds
        .exactOptional()
        .describe("Time until a journaled record is durable, unless a send forces it earlier."),
      links: z
        .array(z.strictObject({ from: node, to: node, ...linkConditions }, "an object"), "a list of links")
        .exactOptional()
        .describe("Links with other conditions, each in one direction."),
    },
    "an object",
  )
  .describe("The network. Default: every message takes 10 ms, none is lost, links are FIFO.");

const begin = z
  .strictObject(
    {
      nodes: z
        .enum(["idle", "started"], "idle or started")
        .exactOptional()
        .describe(
          "idle: all nodes run and are idle, as in the book. started: all start at time 0. Default: started for protocols that do nothing before they are started (heartbeat, token-ring), otherwise idle.",
        ),
      down: nodeList.default([]).describe("Nodes that have crashed before the beginning."),
      states: z
        .record(nodeKey, fields, "an object from node to fields of its state")
        .default({})
        .describe("Fields of the initial state of a node, such as a clock."),
    },
    "an object",
  )
  .describe("The nodes at the beginning.");

/** The kinds of events that a condition can wait for. */
export const conditionWords = ["sends", "receives", "emits", "timesOut", "becomes"] as const;

/** For editors only. When Coterie reads a file, soundness.ts reports this mistake with a clearer message. */
function exactlyOneOf(words: readonly string[]): { oneOf: { required: string[] }[] } {
  return { oneOf: words.map((word) => ({ required: [word] })) };
}

const when = z
  .strictObject(
    {
      node: node.exactOptional().describe("The node of the condition. Default: any node."),
      sends: word.exactOptional().describe("It sends a message of this type …"),
      to: node.exactOptional().describe("… to this node."),
      receives: word.exactOptional().describe("It receives a message of this type …"),
      from: node.exactOptional().describe("… from this node."),
      emits: word.exactOptional().describe("It emits an event of this type, such as elected or entered."),
      timesOut: word.exactOptional().describe("This timer of the node fires."),
      becomes: word.exactOptional().describe("It takes on this role, such as leader or campaigning."),
      occurrence: z
        .int("a whole number > 0")
        .positive("a whole number > 0")
        .default(1)
        .describe("The number of the occurrence, counted from the previous step: 2 waits for the second."),
    },
    "an object such as { node: 5, sends: answer }",
  )
  .meta(exactlyOneOf(conditionWords))
  .describe("Waits until this happens after the previous step.");

const time = {
  at: milliseconds.exactOptional().describe("At this time of the run, in milliseconds."),
  when: when.exactOptional(),
  after: milliseconds.exactOptional().describe("Milliseconds after the previous step, or after `when`."),
};

const fromTo = z.strictObject({ from: nodes, to: nodes }, "an object { from, to }");
const aLink = z.strictObject({ from: nodes, to: nodes, ...linkConditions }, "an object { from, to, … }");
const partition = z.union(
  [
    z.array(nodeList, "a list of groups"),
    z.strictObject({ oneWay: z.strictObject({ from: nodeList, to: nodeList }, "an object { from, to }") }),
    z.strictObject({ bridge: node }),
    z.strictObject({ majorityRing: z.literal(true, "true") }),
  ],
  "a list of groups, { oneWay: { from, to } }, { bridge: node } or { majorityRing: true }",
);

/** Requests to nodes, by the verb of each family. */
const asks = {
  call: nodes.exactOptional().describe("Election: these nodes call one."),
  request: nodes.exactOptional().describe("Mutual exclusion: these nodes request to enter."),
  send: nodes.exactOptional().describe("Multicast: these nodes send."),
  propose: nodes.exactOptional().describe("Consensus: these nodes propose."),
  voteNo: nodes.exactOptional().describe("Atomic commit: these nodes vote no from now on."),
};

const deeds = {
  ...asks,
  command: z
    .strictObject({ node: nodes, command: z.looseObject({ type: word }, "an object with a type") }, "{ node, command }")
    .exactOptional()
    .describe("Gives a command of the protocol, such as { type: suspect, node: 7 }."),
  crash: nodes
    .exactOptional()
    .describe("These nodes crash: they lose their state, their timers and the messages in transit to them."),
  start: nodes.exactOptional().describe("These nodes start or restart. The journal is replayed first."),
  pause: nodes.exactOptional().describe("These nodes are paused. Messages to them wait."),
  resume: nodes.exactOptional().describe("These nodes resume."),
  clock: z
    .strictObject({ node: nodes, rate: z.number("a rate above 0").positive("a rate above 0") }, "{ node, rate }")
    .exactOptional()
    .describe("The rate of their timers from now on: 2 is twice as fast, 0.5 half as fast."),
  cut: fromTo.exactOptional().describe("From now on messages in this direction are lost."),
  mend: fromTo.exactOptional().describe("Messages in this direction arrive again."),
  partition: partition
    .exactOptional()
    .describe(
      "Groups of nodes that are cut off from each other (the remaining nodes form one more); or a one-way cut; or two halves that only a bridge connects; or a ring of nodes that reach only their neighbors.",
    ),
  heal: z.literal("all", '"all"').exactOptional().describe("All cuts are repaired."),
  link: aLink.exactOptional().describe("From now on these links have other delays, losses or bandwidth."),
};

const step = z
  .strictObject(
    {
      ...time,
      ...deeds,
      times: z
        .int("a whole number > 0")
        .positive("a whole number > 0")
        .exactOptional()
        .describe("With request, send or propose: how often, if the protocol supports that."),
      journal: z
        .enum(["kept", "synced", "lost", "corrupted"], "kept, synced, lost or corrupted")
        .exactOptional()
        .describe("With crash: the fate of the journal. synced: records that were not durable are lost."),
      withinStep: z
        .literal(true, "true")
        .exactOptional()
        .describe("With crash, when the node itself sends or emits something: the rest of that step is skipped."),
    },
    "an object such as { at: 100, crash: 7 }",
  )
  .meta(exactlyOneOf(Object.keys(deeds)))
  .describe("One action and its time. Steps are taken in order; without a time, at once.");

const messages = z.union(
  [
    whole,
    z.strictObject(
      {
        total: whole.exactOptional(),
        byType: z.record(z.string(), whole, "an object from type to count").exactOptional(),
      },
      "an object",
    ),
  ],
  "a count, or { total, byType }",
);

const expectation = z
  .strictObject(
    {
      leader: byNode(z.union([node, z.null()]), "a node or null")
        .exactOptional()
        .describe("Election, consensus with a leader: the leader that every alive node knows, or by node."),
      entries: nodeList.exactOptional().describe("Mutual exclusion: the nodes that entered, in order."),
      waiting: nodeList
        .exactOptional()
        .describe("Mutual exclusion: the nodes that requested and have not entered, ascending."),
      delivered: byNode(z.array(word, "a list of messages"), "a list of messages")
        .exactOptional()
        .describe("Multicast: the delivered messages in order, at every alive node or by node."),
      decided: byNode(z.union([word, z.array(word), z.null()]), "a value, a list of them, or null")
        .exactOptional()
        .describe(
          "Consensus: the decision of every alive node, or by node; null: none. For a replicated log, the commands in order.",
        ),
      suspected: byNode(nodeList, A_LIST)
        .exactOptional()
        .describe("Membership: the nodes that every alive node suspects, ascending, or by node."),
      messages: messages.exactOptional().describe("How many messages were sent, self-sends not counted."),
      datagrams: whole
        .exactOptional()
        .describe("The number of datagrams if one reaches all other nodes, as with IP multicast."),
      violated: z
        .array(word, "a list of names of properties")
        .default([])
        .describe("The violated properties, and no others. Default: all hold."),
      restsByMs: milliseconds.exactOptional().describe("The run is idle after this time."),
    },
    "an object",
  )
  .describe("The expected result.");

/** The Zod schema of a scenario. */
export const scenarioSchema = z
  .strictObject(
    {
      $schema: z.string("text").exactOptional(),
      name: z.string(A_NAME).min(1, A_NAME).describe("One line."),
      about: z.string("text").default("").describe("The story, and why it is interesting."),
      protocol: word.meta({ enum: protocolNames }).describe("A name of the registry, as in `coterie protocols`."),
      variant: word.exactOptional().describe("A variant of the protocol."),
      options: fields.default({}).describe("The protocol's own options."),
      nodes: z
        .union(
          [
            z.int(A_COUNT).min(1, "at least 1").max(MAX_NODES, `at most ${MAX_NODES}`),
            z.array(node).min(1, "at least one node"),
          ],
          A_COUNT,
        )
        .describe(
          "The number of nodes, with ids from 0; or their ids, in the order of the ring if the protocol has one.",
        ),
      seed: z
        .int(`a seed from 0 to ${MAX_SEED}`)
        .min(0, `a seed from 0 to ${MAX_SEED}`)
        .max(MAX_SEED, `a seed from 0 to ${MAX_SEED}`)
        .default(1)
        .describe("Equal seeds give equal runs."),
      network: network.default({}),
      begin: begin.prefault({}),
      byzantine: z
        .union(
          [
            z.record(nodeKey, z.enum(behaviours, `one of ${behaviours.join(", ")}`)),
            z.array(node).transform((nodes) => Object.fromEntries(nodes.map((id) => [id, "adversary" as const]))),
          ],
          "an object from node to behavior, or a list of nodes",
        )
        .default({})
        .describe("Byzantine nodes and their behavior. A list means adversary for all."),
      steps: z.array(step, "a list of steps").default([]).describe("The steps, in order."),
      until: milliseconds.exactOptional().describe("The end of the run in milliseconds. Default: when it is idle."),
      expect: expectation.prefault({}),
      variants: z
        .record(word, expectation, "an object from protocol to the expected result")
        .default({})
        .describe("Other protocols for the same steps, and the expected result of each."),
      labels: z
        .record(messageKey, word, 'an object from message to name, such as { "0.1": F1 }')
        .default({})
        .describe("Multicast: names of messages in pictures and in the report."),
    },
    "an object with name, protocol and nodes",
  )
  .describe("A scenario of Coterie: a run of a protocol as data.");

/** A validated scenario, with all defaults filled in. */
export type Scenario = z.output<typeof scenarioSchema>;
/** A scenario as users write it. Fields with a default may be omitted. */
export type ScenarioSource = z.input<typeof scenarioSchema>;
export type Step = Scenario["steps"][number];
export type Condition = NonNullable<Step["when"]>;
export type Expectation = Scenario["expect"];
/** A node id, a list of node ids, or `all`. */
export type Nodes = z.output<typeof nodes>;

export const askWords = Object.keys(asks) as (keyof typeof asks)[];
export const deedWords = Object.keys(deeds) as (keyof typeof deeds)[];

/** Returns the JSON schema that editors use to complete and validate scenario files. */
export function jsonSchema(): object {
  return z.toJSONSchema(scenarioSchema, { io: "input", target: "draft-7" });
}

/**
 * Returns a scenario with the same steps under another protocol, one of its `variants`.
 * @throws UsageError if the scenario has no such variant
 */
export function asVariant(scenario: Scenario, name: string): Scenario {
  if (name === scenario.protocol) return scenario;
  const expect = Object.hasOwn(scenario.variants, name) ? scenario.variants[name] : undefined;
  if (expect !== undefined) return { ...scenario, protocol: name, expect, variants: {} };
  const known = [scenario.protocol, ...Object.keys(scenario.variants)];
  throw new UsageError(
    "unknown-protocol",
    unexpected("the protocol", `one that the scenario names: ${known.join(", ")}`, name),
  );
}
