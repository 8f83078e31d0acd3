/**
 * The schema of scenarios. A scenario is data: nodes, a protocol, a network, timed steps and the expected result.
 * Files, the command line and editors all use the descriptions in this schema.
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
const messageKey = z.string().regex(/^\d+\.[1-9]\d*(@\d+)?$/, "a sender and a message number from 1, such as 0.1");
const fields = z.record(z.string(), z.unknown(), "an object");

/** Accepts either one value for every alive node or one value per node id. */
function byNode<T extends z.ZodType>(value: T, expected: string) {
  return z.union([value, z.record(nodeKey, value, `${expected}, or an object that maps nodes to such values`)], {
    error: `${expected}, or an object that maps nodes to such values`,
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
  .describe("Milliseconds: constant, [least, most], normal (values below 0 count as 0) or log-normal.");

const linkConditions = {
  delayMs: delay.exactOptional(),
  lossRate: rate.exactOptional().describe("Fraction of lost messages, from 0 to 1."),
  duplicateRate: rate.exactOptional().describe("Fraction of duplicated messages, from 0 to 1."),
  order: z
    .enum(["fifo", "none"], "fifo or none")
    .exactOptional()
    .describe("fifo: messages on a link arrive in the order they were sent. none: in any order."),
  bytesPerMs: z.number("bytes per millisecond").positive("above 0").exactOptional().describe("Bandwidth of a link."),
};

const network = z
  .strictObject(
    {
      ...linkConditions,
      processingMs: delay.exactOptional().describe("How long a node is busy with one message; other messages wait."),
      syncMs: milliseconds
        .exactOptional()
        .describe("Time until a journal record becomes durable, unless a send forces it earlier."),
      links: z
        .array(z.strictObject({ from: node, to: node, ...linkConditions }, "an object"), "a list of links")
        .exactOptional()
        .describe("Links with different conditions, each in one direction."),
    },
    "an object",
  )
  .describe("The network. Default: every message takes 10 ms, no messages are lost, and links are FIFO.");

const begin = z
  .strictObject(
    {
      nodes: z
        .enum(["idle", "started"], "idle or started")
        .exactOptional()
        .describe(
          "idle: all nodes are up and idle, as in the textbook. started: all start at time 0. Default: started for protocols that do nothing before they are started (heartbeat, token-ring), otherwise idle.",
        ),
      down: nodeList.default([]).describe("Nodes that are down at the start."),
      states: z
        .record(nodeKey, fields, "an object that maps nodes to fields of their state")
        .default({})
        .describe("Fields of the initial state of a node, such as a clock."),
    },
    "an object",
  )
  .describe("The nodes at the beginning.");

/** The kinds of events that a condition can wait for. */
export const conditionWords = ["sends", "receives", "emits", "timesOut", "becomes"] as const;

/**
 * States that exactly one of the fields must be present. This is only for editors: when Coterie reads a file,
 * soundness.ts reports the mistake with a clearer message.
 */
function exactlyOneOf(words: readonly string[]): { oneOf: { required: string[] }[] } {
  return { oneOf: words.map((word) => ({ required: [word] })) };
}

const when = z
  .strictObject(
    {
      node: node.exactOptional().describe("The node that the condition refers to. Default: any node."),
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
        .describe("Which occurrence to wait for, counting from the previous step: 2 waits for the second one."),
    },
    "an object such as { node: 5, sends: answer }",
  )
  .meta(exactlyOneOf(conditionWords))
  .describe("Waits until this happens after the previous step.");

const time = {
  at: milliseconds.exactOptional().describe("The time of the step, in milliseconds since the beginning of the run."),
  when: when.exactOptional(),
  after: milliseconds.exactOptional().describe("The delay after the previous step or after `when`, in milliseconds."),
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

/** Requests to nodes, named after each family's verb. */
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
    .describe("These nodes crash. They lose their state, their timers and the messages in transit to them."),
  start: nodes.exactOptional().describe("These nodes start or restart. The journal is replayed first."),
  pause: nodes.exactOptional().describe("These nodes are paused. Messages sent to them wait."),
  resume: nodes.exactOptional().describe("These nodes resume."),
  clock: z
    .strictObject({ node: nodes, rate: z.number("a rate above 0").positive("a rate above 0") }, "{ node, rate }")
    .exactOptional()
    .describe("The rate of this node's timers from now on: 2 is twice as fast, 0.5 is half as fast."),
  cut: fromTo.exactOptional().describe("From now on messages in this direction are lost."),
  mend: fromTo.exactOptional().describe("Messages in this direction are delivered again."),
  partition: partition
    .exactOptional()
    .describe(
      "Groups of nodes that are cut off from each other (any remaining nodes form one more group); or a one-way cut; or two halves connected only by a bridge; or a ring of nodes that can reach only their neighbors.",
    ),
  heal: z.literal("all", '"all"').exactOptional().describe("All cuts are mended."),
  link: aLink.exactOptional().describe("From now on these links have different delays, losses or bandwidth."),
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
        .describe("With request, send or propose: how many times to do it, if the protocol supports that."),
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
  .describe("One action and its time. Steps are taken in order. A step without a time is taken at once.");

const messages = z.union(
  [
    whole,
    z.strictObject(
      {
        total: whole.exactOptional(),
        byType: z.record(z.string(), whole, "an object that maps message types to counts").exactOptional(),
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
        .describe("Election, consensus with a leader: the leader that every alive node follows, or one per node."),
      entries: nodeList.exactOptional().describe("Mutual exclusion: the nodes that entered, in order."),
      waiting: nodeList
        .exactOptional()
        .describe("Mutual exclusion: the nodes that have requested but not entered, in ascending order."),
      delivered: byNode(z.array(word, "a list of messages"), "a list of messages")
        .exactOptional()
        .describe("Multicast: the delivered messages in order, at every alive node or per node."),
      decided: byNode(z.union([word, z.array(word), z.null()]), "a value, a list of them, or null")
        .exactOptional()
        .describe(
          "Consensus: the decision of every alive node, or one per node. null: none. For a replicated log, the commands in order.",
        ),
      suspected: byNode(nodeList, A_LIST)
        .exactOptional()
        .describe("Membership: the nodes that every alive node suspects, or one list per node, in ascending order."),
      messages: messages.exactOptional().describe("The number of messages sent, excluding those to the sender itself."),
      datagrams: whole
        .exactOptional()
        .describe("The number of datagrams if one datagram reaches all other nodes, as with IP multicast."),
      violated: z
        .array(word, "a list of property names")
        .default([])
        .describe("The properties that are violated; all others must hold. Default: none."),
      restsByMs: milliseconds.exactOptional().describe("The run must be idle by this time, in milliseconds."),
    },
    "an object",
  )
  .describe("The expected result.");

/** The Zod schema of a scenario. */
export const scenarioSchema = z
  .strictObject(
    {
      $schema: z.string("text").exactOptional(),
      name: z.string(A_NAME).min(1, A_NAME).describe("The scenario's name, in one line."),
      about: z.string("text").default("").describe("What happens in the scenario, and why it is interesting."),
      protocol: word.meta({ enum: protocolNames }).describe("A protocol name, as listed by `coterie protocols`."),
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
          "an object that maps nodes to behaviors, or a list of nodes",
        )
        .default({})
        .describe("Byzantine nodes and their behavior. A list means adversary for all."),
      steps: z.array(step, "a list of steps").default([]).describe("The steps, in order."),
      until: milliseconds.exactOptional().describe("The end of the run in milliseconds. Default: when it is idle."),
      expect: expectation.prefault({}),
      variants: z
        .record(word, expectation, "an object that maps protocols to expected results")
        .default({})
        .describe("Other protocols to run with the same steps, and the expected result for each."),
      labels: z
        .record(messageKey, word, 'an object that maps messages to names, such as { "0.1": F1 }')
        .default({})
        .describe("Multicast: names for messages in pictures and in the report."),
    },
    "an object with name, protocol and nodes",
  )
  .describe("A Coterie scenario: a run of a protocol, as data.");

/** A validated scenario, with all defaults filled in. */
export type Scenario = z.output<typeof scenarioSchema>;
/** A scenario as users write it. Fields with a default may be omitted. */
export type ScenarioSource = z.input<typeof scenarioSchema>;
/** One timed step of a scenario. */
export type Step = Scenario["steps"][number];
/** A condition that a step waits for. */
export type Condition = NonNullable<Step["when"]>;
/** The expected results of a scenario. */
export type Expectation = Scenario["expect"];
/** A node id, a list of node ids, or `all`. */
export type Nodes = z.output<typeof nodes>;

/** The names of steps that make a request to a node. */
export const askWords = Object.keys(asks) as (keyof typeof asks)[];
/** The names of steps that change nodes or links. */
export const deedWords = Object.keys(deeds) as (keyof typeof deeds)[];

/** Returns the JSON schema that editors use for completion and validation in scenario files. */
export function jsonSchema(): object {
  return z.toJSONSchema(scenarioSchema, { io: "input", target: "draft-7" });
}

/**
 * Returns a scenario that takes the same steps with another protocol, one of its `variants`.
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
