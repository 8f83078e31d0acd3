/**
 * Validates aspects of a scenario that its schema does not cover: its nodes exist, and its protocol has the messages,
 * commands and timers that the scenario names.
 */
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { problem } from "../../core/shape.ts";
import { suggestion } from "../../core/suggestion.ts";
import { type AnyProtocol, type Family, hasToStart, protocolNamed, variantNamed } from "../../protocols/index.ts";
import { commandShape, isProperty, isTimer, timersOf, typesOf } from "./names.ts";
import { fieldName, type Path, type Problem, wrong } from "./problem.ts";
import { type Cast, cast } from "./run.ts";
import { askWords, asVariant, conditionWords, deedWords, type Nodes, type Scenario, type Step } from "./schema.ts";

/** The fields of `expect` that apply to each family. */
const outcomeWords: Readonly<Record<Family["name"], readonly string[]>> = {
  election: ["leader"],
  "mutual exclusion": ["entries", "waiting"],
  multicast: ["delivered"],
  consensus: ["decided", "leader"],
  membership: ["suspected"],
  "a custom problem": ["leader"],
};

/** Returns the first problem, or null. */
export function soundnessProblem(scenario: Scenario): Problem | null {
  const found = castProblem(scenario);
  if (found !== null) return found;
  const made = cast(scenario);
  const known = new Set(made.ids);
  return (
    repeatedNode(made.ids) ??
    first(nodeReferences(scenario), ([path, node]) => (known.has(node) ? null : unknownNode(made.ids, path, node))) ??
    first(Object.keys(scenario.begin.states), (id) => downWithState(scenario, id)) ??
    statesProblem(scenario.begin.states, made.protocol, made.ids) ??
    first([...scenario.steps.entries()], ([at, step]) => stepProblem(scenario, made, at, step)) ??
    timeProblem(scenario) ??
    endlessProblem(scenario, made) ??
    expectationProblem(scenario, made) ??
    first(Object.keys(scenario.variants), (name) => variantProblem(scenario, name))
  );
}

/**
 * Returns the first problem with running the scenario under a different protocol. It is reported at the line that names
 * that protocol.
 */
function variantProblem(scenario: Scenario, name: string): Problem | null {
  const found = soundnessProblem(asVariant(scenario, name));
  if (found === null) return null;
  if (found.path[0] !== "expect") return { path: ["variants", name], sentence: found.sentence };
  const path = ["variants", name, ...found.path.slice(1)];
  return { path, sentence: found.sentence.replace(fieldName(found.path), fieldName(path)) };
}

function first<T>(items: readonly T[], problemOf: (item: T) => Problem | null): Problem | null {
  for (const item of items) {
    const found = problemOf(item);
    if (found !== null) return found;
  }
  return null;
}

function castProblem(scenario: Scenario): Problem | null {
  const attempts: [Path, () => unknown][] = [
    [["protocol"], () => protocolNamed(scenario.protocol)],
    [["variant"], () => scenario.variant === undefined || variantNamed(scenario.protocol, scenario.variant)],
    [["options"], () => cast(scenario)],
  ];
  return first(attempts, ([path, attempt]) => {
    try {
      attempt();
      return null;
    } catch (error) {
      if (error instanceof UsageError) return { path, sentence: error.message };
      throw error;
    }
  });
}

function repeatedNode(ids: readonly NodeId[]): Problem | null {
  if (new Set(ids).size === ids.length) return null; // A fast path, because there may be a million nodes.
  const at = ids.findIndex((id, place) => ids.indexOf(id) < place);
  return wrong(["nodes", at], "another id, since each node is listed once", ids[at]);
}

type Reference = readonly [Path, NodeId];

function nodeReferences({ begin, network, byzantine, steps, expect }: Scenario): Reference[] {
  const listed = (path: Path, nodes: Nodes | undefined): Reference[] => {
    if (nodes === undefined || nodes === "all") return [];
    return typeof nodes === "number" ? [[path, nodes]] : nodes.map((node, i): Reference => [[...path, i], node]);
  };
  const ends = (path: Path, link: { from: Nodes; to: Nodes } | undefined): Reference[] =>
    link === undefined ? [] : [...listed([...path, "from"], link.from), ...listed([...path, "to"], link.to)];
  const keys = (path: Path, record: unknown): Reference[] =>
    typeof record !== "object" || record === null || Array.isArray(record)
      ? []
      : Object.keys(record).map((id): Reference => [[...path, id], Number(id)]);
  return [
    ...listed(["begin", "down"], begin.down),
    ...keys(["begin", "states"], begin.states),
    ...keys(["byzantine"], byzantine),
    ...(network.links ?? []).flatMap((link, i) => ends(["network", "links", i], link)),
    ...steps.flatMap((step, i) => {
      const at = (...path: Path): Path => ["steps", i, ...path];
      return [
        ...["node", "to", "from"].flatMap((end) => listed(at("when", end), step.when?.[end as "node"])),
        ...[...askWords, ...(["crash", "start", "pause", "resume"] as const)].flatMap((deed) =>
          listed(at(deed), step[deed]),
        ),
        ...listed(at("command", "node"), step.command?.node),
        ...listed(at("clock", "node"), step.clock?.node),
        ...(["cut", "mend", "link"] as const).flatMap((deed) => ends(at(deed), step[deed])),
        ...partitionReferences(at("partition"), step.partition),
      ];
    }),
    ...["leader", "delivered", "decided", "suspected"].flatMap((word) =>
      keys(["expect", word], expect[word as "leader"]),
    ),
    ...valuesOf<NodeId | null>(["expect", "leader"], expect.leader).flatMap(([path, leader]) =>
      listed(path, leader ?? undefined),
    ),
    ...valuesOf<NodeId[]>(["expect", "suspected"], expect.suspected).flatMap(([path, nodes]) => listed(path, nodes)),
    ...listed(["expect", "entries"], expect.entries),
    ...listed(["expect", "waiting"], expect.waiting),
  ];

  function partitionReferences(path: Path, shape: Step["partition"]): Reference[] {
    if (shape === undefined || "majorityRing" in shape) return [];
    if ("bridge" in shape) return listed([...path, "bridge"], shape.bridge);
    if ("oneWay" in shape) return ends([...path, "oneWay"], shape.oneWay);
    return shape.flatMap((group, i) => listed([...path, i], group));
  }
}

function unknownNode(ids: readonly NodeId[], path: Path, node: NodeId): Problem {
  const isCounted = ids.every((id, place) => id === place) && ids.length > 3;
  return wrong(path, `one of the nodes ${isCounted ? `0 … ${ids.length - 1}` : ids.join(", ")}`, node);
}

function downWithState({ begin }: Scenario, id: string): Problem | null {
  return begin.down.includes(Number(id))
    ? wrong(["begin", "states", id], "absent: the node is down", begin.states[id])
    : null;
}

function stepProblem(scenario: Scenario, { protocol, family }: Cast, at: number, step: Step): Problem | null {
  const path = ["steps", at];
  const done = deedWords.filter((deed) => step[deed] !== undefined);
  if (done.length !== 1)
    return wrong(path, "exactly one action, such as { crash: 7 }", done.length === 0 ? step : done.join(" and "));
  const asked = askWords.find((word) => step[word] !== undefined);
  const isKnown = asked === family.verb || (asked === "voteNo" && family.refuse !== undefined);
  if (asked !== undefined && !isKnown)
    return {
      path: [...path, asked],
      sentence: `expected ${fieldName([...path, asked])} to be absent: ${scenario.protocol} is a protocol for ${family.name}; ${family.verb === null ? "its nodes take no requests" : `write ${family.verb}`}`,
    };
  if (step.times !== undefined && (asked === undefined || asked === "voteNo" || family.count === null))
    return wrong([...path, "times"], "absent without request, send or propose", step.times);
  if (step.journal !== undefined && step.crash === undefined)
    return wrong([...path, "journal"], "absent without crash", step.journal);
  const struck = withinStepProblem(path, step);
  if (struck !== null) return struck;
  if (step.at !== undefined && (step.when !== undefined || step.after !== undefined))
    return wrong([...path, "at"], "absent with when or after", step.at);
  return (
    commandProblem([...path, "command", "command"], protocol, step) ??
    conditionProblem([...path, "when"], protocol, step)
  );
}

/** Checks that a crash within a step has a condition about a message or event of the same node. */
function withinStepProblem(path: Path, { withinStep, crash, when, after }: Step): Problem | null {
  if (withinStep === undefined) return null;
  if (typeof crash !== "number")
    return wrong([...path, "withinStep"], "absent without the crash of a single node", withinStep);
  const isItsOwn = when?.node === crash && (when.sends !== undefined || when.emits !== undefined);
  if (!isItsOwn)
    return wrong([...path, "when"], `a message or event of node ${crash}, for withinStep`, when ?? "nothing");
  return after === undefined ? null : wrong([...path, "after"], "absent with withinStep", after);
}

function commandProblem(path: Path, protocol: AnyProtocol, { command }: Step): Problem | null {
  if (command === undefined) return null;
  const { type, ...rest } = command.command;
  const shape = commandShape(protocol, type);
  if (shape === null) return oneOf([...path, "type"], typesOf(protocol, "command"), type);
  const sentence = problem(shape, rest, fieldName(path));
  return sentence === null ? null : { path, sentence };
}

function conditionProblem(path: Path, protocol: AnyProtocol, { when }: Step): Problem | null {
  if (when === undefined) return null;
  const awaited = conditionWords.filter((word) => when[word] !== undefined);
  if (awaited.length !== 1)
    return wrong(path, `one of ${conditionWords.join(", ")}`, awaited.length === 0 ? when : awaited.join(" and "));
  for (const [end, word] of [
    ["to", "sends"],
    ["from", "receives"],
  ] as const)
    if (when[end] !== undefined && when[word] === undefined)
      return wrong([...path, end], `absent without ${word}`, when[end]);
  for (const word of ["sends", "receives"] as const) {
    const type = when[word];
    const types = typesOf(protocol, "message");
    if (type !== undefined && !types.includes(type)) return oneOf([...path, word], types, type);
  }
  const timers = timersOf(protocol);
  const { timesOut } = when;
  return timesOut === undefined || timers.some((timer) => isTimer(timer, timesOut))
    ? null
    : oneOf([...path, "timesOut"], timers, timesOut);
}

function oneOf(path: Path, known: readonly string[], got: string): Problem {
  const { sentence } = wrong(path, known.length === 0 ? "absent: there is none" : `one of ${known.join(", ")}`, got);
  return { path, sentence: sentence + suggestion(got, known) };
}

/** Checks the times. Steps are taken in order, so no step may have an earlier time than a step before it. */
function timeProblem({ steps, until }: Scenario): Problem | null {
  let reached = 0;
  for (const [i, { at, after, when }] of steps.entries()) {
    if (at !== undefined && at < reached)
      return wrong(["steps", i, "at"], `${reached} or more, since steps are taken in order`, at);
    reached = at ?? (when === undefined ? reached + (after ?? 0) : reached);
  }
  return until !== undefined && until < reached
    ? wrong(["until"], `${reached} or more, when the last step is taken`, until)
    : null;
}

/** Checks that the scenario has an end if its protocol never becomes idle. */
function endlessProblem({ protocol: name, variant, until }: Scenario, { begin }: Cast): Problem | null {
  if (until !== undefined || begin === "idle" || !hasToStart(name, variant)) return null;
  return {
    path: [],
    sentence: `expected until to be set, since ${name} is never idle: until: 10000 ends it after 10 s`,
  };
}

function expectationProblem(
  { expect, until, protocol: name }: Scenario,
  { protocol, family, ids }: Cast,
): Problem | null {
  if (until !== undefined && expect.restsByMs !== undefined)
    return wrong(["until"], "absent with expect.restsByMs: the run ends when it is idle", until);
  const fitting = outcomeWords[family.name];
  const stray = Object.values(outcomeWords)
    .flat()
    .find((word) => Object.hasOwn(expect, word) && !fitting.includes(word));
  if (stray !== undefined)
    return {
      path: ["expect", stray],
      sentence: `expected expect.${stray} to be absent: ${name} is a protocol for ${family.name}; write ${fitting.join(" or ")}`,
    };
  const undelivered = deliveryProblem(expect, ids);
  if (undelivered !== null) return undelivered;
  const names = protocol.properties.map((property) => property.name);
  for (const [i, word] of expect.violated.entries())
    if (!names.some((property) => isProperty(property, word))) return oneOf(["expect", "violated", i], names, word);
  const counted = typeof expect.messages === "object" ? Object.keys(expect.messages.byType ?? {}) : [];
  const types = typesOf(protocol, "message");
  const unknown = counted.find((type) => !types.includes(type));
  return unknown === undefined ? null : oneOf(["expect", "messages", "byType", unknown], types, unknown);
}

/**
 * Checks the names of delivered messages, which consist of the sender and a count. With overlapping groups, the group
 * comes after that, as in `0.1@2`.
 */
function deliveryProblem({ delivered }: Scenario["expect"], ids: readonly NodeId[]): Problem | null {
  for (const [path, messages] of valuesOf<string[]>(["expect", "delivered"], delivered))
    for (const [i, message] of messages.entries()) {
      const [, sender] = /^(\d+)\.[1-9]\d*(?:@\d+)?$/.exec(message) ?? [];
      if (sender === undefined)
        return wrong([...path, i], "a sender and a message number from 1, such as 0.1", message);
      if (!ids.includes(Number(sender))) return unknownNode(ids, [...path, i], Number(sender));
    }
  return null;
}

/** Returns the values of an expectation with their paths: either one value for all nodes, or one per node. */
function valuesOf<T>(path: Path, said: unknown): (readonly [Path, T])[] {
  if (said === undefined) return [];
  const isByNode = typeof said === "object" && said !== null && !Array.isArray(said);
  if (!isByNode) return [[path, said as T]];
  return Object.entries(said as Readonly<Record<string, T>>).map(([id, value]) => [[...path, id], value] as const);
}

/**
 * Returns the first field that a node's initial state does not have or has with a different type. Null if there is
 * none.
 */
function statesProblem(
  states: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  protocol: AnyProtocol,
  ids: readonly NodeId[],
): Problem | null {
  for (const [id, given] of Object.entries(states)) {
    const self = Number(id);
    const peers = ids.filter((peer) => peer !== self).sort((a, b) => a - b);
    const found = fieldProblem(["begin", "states", id], given, protocol.init(self, peers));
    if (found !== null) return found;
  }
  return null;
}

/** Compares a value with the initial one. A field that is initially null or empty may have any value. */
function fieldProblem(path: Path, given: unknown, initial: unknown): Problem | null {
  const kind = kindOf(initial);
  if (kind === "null") return null;
  if (kindOf(given) !== kind) return wrong(path, kind, given);
  if (kind !== "an object") return null;
  const known = Object.keys(initial as object);
  if (known.length === 0) return null;
  for (const [field, value] of Object.entries(given as object)) {
    const at = [...path, field];
    if (!known.includes(field)) {
      const { sentence } = wrong(at, `absent: the fields are ${known.join(", ")}`, value);
      return { path: at, sentence: sentence + suggestion(field, known) };
    }
    const found = fieldProblem(at, value, (initial as Readonly<Record<string, unknown>>)[field]);
    if (found !== null) return found;
  }
  return null;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "a list";
  return { number: "a number", string: "text", boolean: "true or false" }[typeof value as string] ?? "an object";
}
