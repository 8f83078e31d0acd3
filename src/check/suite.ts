/**
 * From the words that every command has in common to a system that can be explored. The words are plain data, so a
 * worker thread or a page builds the same system from them again.
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

/** Plain data. */
export interface SystemSpec extends Readonly<Partial<Record<FaultKind, number>>> {
  /** A name of the registry. */
  readonly protocol: string;
  readonly variant?: string | null;
  /** Of the protocol. */
  readonly options?: object;
  readonly nodes: readonly NodeId[];
  /**
   * The nodes that do its family's work: call, request, send or propose. All by default; none where nodes
   * begin with work of their own.
   */
  readonly initiators?: readonly NodeId[];
  /** The nodes that may come to vote no, where there are votes. Nobody by default. */
  readonly refusers?: readonly NodeId[];
  /** How many entries, messages or transactions each is asked for. 1 by default. */
  readonly times?: number;
  readonly network?: NetworkKind;
  readonly timers?: TimerMode;
  /** By default what has to be started begins `together`, and the rest `idle`; with free timers `down` where starting does something. */
  readonly begin?: "idle" | "down" | "together";
  readonly journal?: "kept" | "lost";
  /** Whether crashes may strike within a step. */
  readonly withinStep?: boolean;
  /** Nodes that lie, and how. Properties speak of the others. */
  readonly byzantine?: Readonly<Record<NodeId, NamedBehaviour>>;
  /** Everybody is told of crashes, where the protocol can be, and when. Nobody is by default. */
  readonly crashNotifications?: CrashNotificationTime;
  /** How many faults of all kinds together. */
  readonly faults?: number;
  /** The name of the only property to check. All of them by default. */
  readonly property?: string | null;
  readonly maxInFlight?: number;
  readonly maxTimeouts?: number;
  readonly maxDepth?: number;
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
  begin: oneOf(...choices.begin),
  crashNotifications: oneOf(...choices.crashNotifications),
  byzantine: fields,
  property: orNull(name),
  maxDepth: natural,
  maxStates: natural,
};

/**
 * Links keep their order and timers are free unless the words say otherwise. By default there are no faults.
 *
 * @throws UsageError for names that are not in the registry, initiators that are no nodes, options that the protocol
 *   refuses.
 */
export function systemFor(spec: SystemSpec): ExploreOptions<Vocabulary> {
  requireOptions("systemFor", spec, rules);
  const entry = protocolNamed(spec.protocol);
  const protocol = protocolOf(spec);
  const counters = Object.keys(spec.byzantine ?? {}).length === 0 ? countersOf(spec) : []; // A lie counts up by itself.
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

/** Whether this form handles notifications of crashes: one with a failure detector of its own, or without use for one, does not. */
export const handlesCrashNotifications = (spec: SystemSpec): boolean =>
  notificationFor(protocolOf(spec), spec) !== null;

function countersOf({ protocol, variant = null }: SystemSpec): readonly string[] {
  const { check } = protocolNamed(protocol);
  const isChecked = variant === null || variant === check.variant;
  return (isChecked ? check.counters : variantNamed(protocol, variant).counters) ?? [];
}

/** A form with a failure detector of its own, or without use for one, does not know the command. */
function notificationFor(
  { shapes }: AnyProtocol,
  { protocol, variant = null }: SystemSpec,
): ((crashed: NodeId) => Tagged) | null {
  const own = variant === null ? undefined : variantNamed(protocol, variant).crashNotification;
  const tells = own ?? protocolNamed(protocol).check.crashNotification ?? null;
  const isKnown = tells !== null && problem(variants((shapes.command ?? {}) as never), tells(0), "") === null;
  return isKnown ? tells : null;
}

/** What has to be started is started first. Of the rest, what works when it starts may do so at any time, unless time has bounds. */
function beginOf(spec: SystemSpec): "idle" | "down" | "together" {
  const { protocol, variant = null } = spec;
  if (hasToStart(protocol, variant)) return "together";
  if (variant !== null && variantNamed(protocol, variant).mustStart === false) return "idle";
  return spec.timers !== "quiet" && worksAtStart(spec) ? "down" : "idle";
}

/** Whether nodes have enough to do as they start, so that nobody is asked for anything unless somebody says so. */
export function isWorkEnough(spec: SystemSpec): boolean {
  const { begin = beginOf(spec) } = spec;
  return begin !== "idle" && !hasToStart(spec.protocol, spec.variant) && worksAtStart(spec);
}

const limits = [
  "crashes",
  "recoveries",
  "losses",
  "duplications",
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

/** Each is asked once, for so many entries or messages. */
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

/** Whether a first start changes or causes anything. */
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
    throw new UsageError("unknown-node", unexpected("the nodes that lie", `among ${nodes.join(", ")}`, stranger[0]));
  return behaviours.length === 0 ? honest : byzantine(honest, new Map(behaviours));
}
