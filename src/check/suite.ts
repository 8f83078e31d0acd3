/**
 * Builds a system to explore from the options that all commands share. The specification is plain data, so a worker
 * thread or a web page can build the same system from it.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { equal } from "../core/plain.ts";
import type { CommandOf, NodeId, Property, Tagged, Vocabulary } from "../core/protocol.ts";
import { problem, variants } from "../core/shape.ts";
import { step } from "../core/step.ts";
import { byzantine, type NamedBehaviour } from "../protocols/byzantine.ts";
import { type AnyProtocol, type Family, hasToStart, protocolNamed, variantNamed } from "../protocols/index.ts";
import { fields, ids, natural, needed, nodes, oneOf, type Rules, requireOptions } from "../protocols/known-options.ts";
import type { ExploreOptions } from "./explore.ts";
import type { CrashNotificationTime, TimerMode } from "./model.ts";
import { choices, type FaultKind, modelLimits, name, orNull } from "./model-options.ts";
import type { NetworkKind } from "./network.ts";
import type { TimeBounds } from "./timed-network.ts";

/** The specification of a system, as plain data. */
export interface SystemSpec extends Readonly<Partial<Record<FaultKind, number>>> {
  /** The name of a registered protocol. */
  readonly protocol: string;
  /** The name of a variant of the protocol. Default, or if null: the plain form. */
  readonly variant?: string | null;
  /** Options of the protocol. */
  readonly options?: object;
  /** The ids of all nodes. */
  readonly nodes: readonly NodeId[];
  /**
   * The nodes that perform the work of the protocol's family: calling, requesting, sending or proposing. Default: all
   * nodes, or none if nodes have work of their own from the start.
   */
  readonly initiators?: readonly NodeId[];
  /** In protocols with votes, the nodes that can vote no. Default: none. */
  readonly refusers?: readonly NodeId[];
  /** The number of entries, messages or transactions per initiator. Default: 1. */
  readonly times?: number;
  /** The delivery order of messages. Default: `fifo`. */
  readonly network?: NetworkKind;
  /** When timers fire. Default: `free`. */
  readonly timers?: TimerMode;
  /** The bounds on time, if timers are timed. See `ModelOptions.time`. */
  readonly time?: TimeBounds;
  /**
   * How nodes begin. Default: `together` for protocols that must be started. For others, `down` if starting has an
   * effect and `timers` is not `quiet`, and otherwise `idle`.
   */
  readonly begin?: "idle" | "down" | "together";
  /** Whether a journal survives a crash. Default: `kept`. */
  readonly journal?: "kept" | "lost";
  /** Whether crashes can happen within a step. */
  readonly withinStep?: boolean;
  /** The Byzantine nodes and the behavior of each. Properties concern only the other nodes. */
  readonly byzantine?: Readonly<Record<NodeId, NamedBehaviour>>;
  /** When nodes are notified of crashes, if the protocol supports it. Default: no notifications. */
  readonly crashNotifications?: CrashNotificationTime;
  /** The maximum number of faults of all kinds combined. */
  readonly faults?: number;
  /** The name of the only property to check. Default: all properties. */
  readonly property?: string | null;
  /** The maximum number of messages in flight. Runs with more are cut off. Default: no limit. */
  readonly maxInFlight?: number;
  /** The maximum number of timeouts. Runs with more are cut off. Default: no limit. */
  readonly maxTimeouts?: number;
  /** The maximum number of moves in a run. States that take more moves to reach are not explored. Default: no limit. */
  readonly maxDepth?: number;
  /** The maximum number of states. The search stops when it reaches them. Default: 100 million. */
  readonly maxStates?: number;
}

const rules: Rules<SystemSpec> = {
  ...modelLimits,
  protocol: needed(name),
  variant: orNull(name),
  options: fields,
  nodes: needed(nodes),
  initiators: ids,
  refusers: ids,
  times: natural,
  network: oneOf(...choices.network),
  timers: oneOf(...choices.timers),
  time: fields,
  begin: oneOf(...choices.begin),
  crashNotifications: oneOf(...choices.crashNotifications),
  byzantine: fields,
  property: orNull(name),
  maxDepth: natural,
  maxStates: natural,
};

/**
 * Builds the system. By default, links keep their order, timers are free, and nothing fails.
 *
 * @example const { verdict } = explore(systemFor({ protocol: "ricart-agrawala", nodes: [0, 1, 2], initiators: [0, 1]
 * }));
 * @throws UsageError if a name is not registered, an initiator is not a node, or the protocol rejects its options
 */
export function systemFor(spec: SystemSpec): ExploreOptions<Vocabulary> {
  requireOptions("systemFor", spec, rules);
  const entry = protocolNamed(spec.protocol);
  const protocol = protocolOf(spec);
  // Byzantine nodes use arbitrary values, so counters cannot be merged.
  const counters = Object.keys(spec.byzantine ?? {}).length === 0 ? countersOf(spec) : [];
  const crashNotification = notificationFor(protocol, spec);
  const { network = "fifo", timers = "free", begin = beginOf(spec) } = spec;
  const { initiators = isWorkEnough(spec) ? [] : spec.nodes } = spec;
  return {
    protocol,
    nodes: spec.nodes,
    network,
    timers,
    begin,
    asks: asksOf(entry.family, initiators, spec),
    properties: propertiesOf(protocol, spec.property ?? null),
    ...(crashNotification !== null && spec.crashNotifications !== undefined
      ? {
          crashNotification: crashNotification as (crashed: NodeId) => CommandOf<Vocabulary>,
          crashNotifications: spec.crashNotifications,
        }
      : {}),
    ...(counters.length === 0 ? {} : { counters }),
    ...given(spec, limits),
  };
}

/** Whether this form handles crash notifications. A form that has its own failure detector, or needs none, does not. */
export const handlesCrashNotifications = (spec: SystemSpec): boolean =>
  notificationFor(protocolOf(spec), spec) !== null;

function countersOf({ protocol, variant = null }: SystemSpec): readonly string[] {
  const { check } = protocolNamed(protocol);
  const isChecked = variant === null || variant === check.variant;
  return (isChecked ? check.counters : variantNamed(protocol, variant).counters) ?? [];
}

/**
 * Returns the crash notification. A form that has its own failure detector, or needs none, does not have this command.
 */
function notificationFor(
  { shapes }: AnyProtocol,
  { protocol, variant = null }: SystemSpec,
): ((crashed: NodeId) => Tagged) | null {
  const own = variant === null ? undefined : variantNamed(protocol, variant).crashNotification;
  const tells = own ?? protocolNamed(protocol).check.crashNotification ?? null;
  const isKnown = tells !== null && problem(variants((shapes.command ?? {}) as never), tells(0), "") === null;
  return isKnown ? tells : null;
}

/**
 * Returns how nodes begin. Protocols that must be started are started first. Other nodes that have work from their
 * start may start at any time, unless timers are quiet.
 */
function beginOf(spec: SystemSpec): "idle" | "down" | "together" {
  const { protocol, variant = null } = spec;
  if (hasToStart(protocol, variant)) return "together";
  if (variant !== null && variantNamed(protocol, variant).mustStart === false) return "idle";
  return spec.timers !== "quiet" && worksAtStart(spec) ? "down" : "idle";
}

/** Whether nodes have enough work of their own from their start that they need no commands by default. */
export function isWorkEnough(spec: SystemSpec): boolean {
  const { begin = beginOf(spec) } = spec;
  return begin !== "idle" && !hasToStart(spec.protocol, spec.variant) && worksAtStart(spec);
}

const limits = [
  "crashes",
  "recoveries",
  "losses",
  "duplications",
  "pauses",
  "time",
  "faults",
  "journal",
  "withinStep",
  "maxInFlight",
  "maxTimeouts",
  "maxDepth",
  "maxStates",
] as const;

function given<T extends object, K extends keyof T>(from: T, names: readonly K[]): Partial<Pick<T, K>> {
  return Object.fromEntries(
    names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]),
  ) as never;
}

/**
 * Returns a function from a node to its commands. Each initiator has one command, for `times` entries or messages, and
 * each refuser has a command to refuse.
 */
function asksOf(
  family: Family,
  initiators: readonly NodeId[],
  { nodes, times = 1, refusers = [] }: SystemSpec,
): (node: NodeId) => readonly CommandOf<Vocabulary>[] {
  for (const [what, among] of Object.entries({ initiators, refusers })) {
    const stranger = among.find((node) => !nodes.includes(node));
    if (stranger !== undefined)
      throw new UsageError("unknown-node", unexpected(what, `among ${nodes.join(", ")}`, stranger));
  }
  return (node) => {
    const refusal = refusers.includes(node) ? family.refuse?.() : null;
    const command = initiators.includes(node) ? family.ask(node, times) : null;
    return [refusal, command].filter((asked) => asked != null) as CommandOf<Vocabulary>[];
  };
}

function propertiesOf(protocol: AnyProtocol, name: string | null): readonly Property<Vocabulary>[] {
  const { properties } = protocol;
  if (name === null) return properties;
  const found = properties.filter((property) => property.name === name);
  if (found.length > 0) return found;
  const names = properties.map((property) => property.name).join(", ");
  throw new UsageError("unknown-property", unexpected("the property", `one of ${names}`, name));
}

/** Whether a node's first start changes its state or has any other effect. */
function worksAtStart(spec: SystemSpec): boolean {
  const protocol = protocolOf(spec);
  return spec.nodes.some((self) => {
    const peers = spec.nodes.filter((node) => node !== self);
    const first = protocol.init(self, peers);
    const { state, effects } = step(protocol, { self, peers }, first, { kind: "start" });
    return effects.length > 0 || !equal(state, first);
  });
}

function protocolOf({ protocol, variant = null, options, nodes, byzantine: liars = {} }: SystemSpec): AnyProtocol {
  const honest = (variant === null ? protocolNamed(protocol) : variantNamed(protocol, variant)).model(options);
  const behaviours = Object.entries(liars).map(([id, how]) => [Number(id), how] as const);
  const stranger = behaviours.find(([id]) => !nodes.includes(id));
  if (stranger !== undefined)
    throw new UsageError("unknown-node", unexpected("the Byzantine nodes", `among ${nodes.join(", ")}`, stranger[0]));
  return behaviours.length === 0 ? honest : byzantine(honest, new Map(behaviours));
}
