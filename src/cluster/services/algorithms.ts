/** The algorithms that can be used by name, and what members say to each other about them on the wire. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { canonical } from "../../core/plain.ts";
import type { Tagged } from "../../core/protocol.ts";
import {
  boolean,
  evolving,
  natural,
  oneOf,
  type Shape,
  type Shapes,
  struct,
  text,
  type UNKNOWN_VARIANT,
  variants,
} from "../../core/shape.ts";
import { type AnyProtocol, type Embedded, protocolNamed, protocolNames } from "../../protocols/index.ts";
import { stacks } from "../../protocols/multicast/family/stacks.ts";
import { STATE_MACHINE_VERSION } from "../../protocols/service/coordination-service/operations.ts";
import { formOf } from "../../runtime/wire.ts";
import type { Kind } from "./api.ts";
import type { Transport } from "./channel-api.ts";
import { stackNamed } from "./channel-stacks.ts";
import { MAX_NAME_BYTES } from "./instance-name.ts";
import type { SharedProtocols } from "./shared-protocols.ts";
import { type Timing, timings, viewOptions } from "./timing.ts";

const kinds: Readonly<Record<string, Kind>> = { election: "election", "mutual exclusion": "mutex" };

/** Of the algorithms that `join()` can run by name. */
const kindOf = (algorithm: string): Kind | null => {
  const { family, embedded } = protocolNamed(algorithm);
  return embedded === null ? null : (kinds[family.name] ?? null);
};

const algorithms = protocolNames.filter((name) => kindOf(name) !== null);

/** @throws UsageError that lists the algorithms there are; or what the algorithm says of its options. */
export function protocolOf({ kind, algorithm, options }: Setting): AnyProtocol {
  if (kind === "channel") {
    const { make, carrier } = stackNamed(algorithm);
    const { timing } = readChannelOptions(options);
    return make(carrier === "views" ? { views: viewOptions(timing) } : {});
  }
  const known = algorithms.filter((name) => kindOf(name) === kind);
  if (!known.includes(algorithm))
    throw new UsageError("unknown-algorithm", unexpected("the algorithm", `one of ${known.join(", ")}`, algorithm));
  return protocolNamed(algorithm).embedded?.make(readOptions(options)) as AnyProtocol;
}

/** What the registry says of it: its wires to what a member has once for all, and how it is put away. Of one that `protocolOf` takes. */
export const embeddedOf = ({ kind, algorithm }: Setting): Embedded =>
  kind === "channel" ? stackNamed(algorithm) : (protocolNamed(algorithm).embedded as Embedded);

/** A channel's options, as they stand in its setting. */
export const channelOptions = (transport: Transport, timing: Timing): object =>
  timing === "default" ? { transport } : { transport, timing };

/** Of a channel's options. @throws UsageError if they are not exactly that. */
export function readChannelOptions(options: string): { transport: Transport; timing: Timing } {
  const { transport, timing = "default", ...others } = readOptions(options);
  const isKnown = (transport === "tcp" || transport === "udp") && timings.includes(timing as Timing);
  if (isKnown && Object.keys(others).length === 0) return { transport, timing: timing as Timing };
  throw new UsageError("bad-option", unexpected("the options of a channel", 'transport "tcp" or "udp"', options));
}

/** They may come from another member: what is no object, or not written as members write it, is refused. */
function readOptions(options: string): Readonly<Record<string, unknown>> {
  const given = parsed(options);
  if (typeof given !== "object" || given === null || Array.isArray(given) || canonical(given) !== options)
    throw new UsageError("bad-option", unexpected("the options", "an object in canonical JSON", options));
  return given as Readonly<Record<string, unknown>>;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export const takes = ({ shapes }: AnyProtocol, command: string): boolean =>
  Object.hasOwn(shapes.command ?? {}, command);

/** In UTF-8; a name is part of every message of its instance. */
const MAX_OPTIONS_BYTES = 4_096;
const MAX_REASON_BYTES = 1_024;

/** How an instance is to be run: the same at every member. `options` is JSON. */
export interface Setting {
  readonly kind: Kind;
  readonly name: string;
  readonly algorithm: string;
  readonly options: string;
}

/** What one member sends to another. */
export type Envelope =
  /** The sender runs this instance, with messages of this form: a member that does not yet opens it. */
  | ({ type: "open"; form: number } & Setting)
  /** The sender runs it otherwise, or cannot run it so. */
  | ({ type: "refuse"; why: string } & Setting)
  /** The sender has as many as it takes, and does without: nothing is wrong with this one. */
  | { type: "full"; kind: Kind; name: string }
  /** The sender has just begun: it does not know which instances there are. */
  | { type: "hello" }
  /** The sender has had a message of an instance that it does not know. */
  | { type: "ask"; kind: Kind; name: string }
  /** Whether readers of the sender's keep up with a channel. */
  | { type: "pressure"; name: string; isFull: boolean }
  /** Of the failure detector, and of the election of who serves: both are there once for all instances. */
  | { type: "detector"; body: Tagged }
  | { type: "leadership"; body: Tagged }
  | ServiceEnvelope
  | InstanceEnvelope;

export interface ServiceEnvelope {
  readonly type: "service";
  content: Content;
}

/** With a message of an instance. */
export type InstanceEnvelope = { [K in Kind]: { type: K; name: string; content: Content } }[Kind];
/** `type` is the name of the algorithm; of one that this release does not know, or knows otherwise, nothing can be read. */
export type Content = { type: string; body: Tagged } | { type: typeof UNKNOWN_VARIANT };

const kindShape = oneOf<Kind>("election", "mutex", "channel");
const nameShape = text(MAX_NAME_BYTES);
/** As a journal keeps it, which may be older than this program. Without an algorithm: the name is not used any more. */
export const settingShape = struct<Setting>({
  kind: kindShape,
  name: nameShape,
  algorithm: text(MAX_NAME_BYTES),
  options: text(MAX_OPTIONS_BYTES),
});
const bodyOf = (protocol: AnyProtocol): Shape<Tagged> => variants((protocol.shapes.message ?? {}) as Shapes<Tagged>);

export function envelopeShape({ detector, leadership, service }: SharedProtocols): Shape<Envelope> {
  const setting = {
    kind: kindShape,
    name: nameShape,
    algorithm: text(MAX_NAME_BYTES), // Another release may have more of them.
    options: text(MAX_OPTIONS_BYTES),
  };
  return variants<Envelope>({
    open: { ...setting, form: natural },
    refuse: { ...setting, why: text(MAX_REASON_BYTES) },
    full: { kind: kindShape, name: nameShape },
    hello: {},
    ask: { kind: kindShape, name: nameShape },
    pressure: { name: nameShape, isFull: boolean },
    detector: { body: bodyOf(detector) },
    leadership: { body: leadership === null ? variants({}) : bodyOf(leadership) },
    election: { name: nameShape, content: contentShape("election") },
    mutex: { name: nameShape, content: contentShape("mutex") },
    channel: { name: nameShape, content: contentShape("channel") },
    service: { content: serviceShape(service) },
  });
}

/** Members whose releases differ in it share all else. */
const serviceShape = (service: AnyProtocol | null): Shape<Content> =>
  evolving<{ type: string; body: Tagged }>(
    Object.fromEntries(service === null ? [] : [[serviceContent(service), { body: bodyOf(service) }]]),
  );

/** What its messages are called: with the meaning of what they carry, which their shape does not show. */
export const serviceContent = ({ name }: AnyProtocol): string => `${name}/${STATE_MACHINE_VERSION}`;

/** Instead of an algorithm: what members say to each other to put a name away. */
export const RETIREMENT = "retirement";
export type RetirementMessage = { type: "ask"; round: number } | { type: "idle"; round: number } | { type: "over" };
const retirementShape = variants<RetirementMessage>({ ask: { round: natural }, idle: { round: natural }, over: {} });

/** They are the same for all members of a process, and it takes all algorithms there are to make them. */
const contentShapes = new Map<Kind, Shape<Content>>();

function contentShape(kind: Kind): Shape<Content> {
  const shape =
    contentShapes.get(kind) ?? evolving<{ type: string; body: Tagged }>(Object.fromEntries(contentsOf(kind)));
  contentShapes.set(kind, shape);
  return shape;
}

/** Of every algorithm of that kind: what its messages look like. */
function contentsOf(kind: Kind): readonly (readonly [algorithm: string, { body: Shape<Tagged> }])[] {
  const named = algorithms.filter((algorithm) => kindOf(algorithm) === kind);
  const protocols = named.map(
    (algorithm) => [algorithm, protocolNamed(algorithm).embedded?.make() as AnyProtocol] as const,
  );
  const channels = kind === "channel" ? stacks.map(({ algorithm, make }) => [algorithm, make()] as const) : [];
  const contents = [...protocols, ...channels].map(([name, protocol]) => [name, { body: bodyOf(protocol) }] as const);
  return [...contents, [RETIREMENT, { body: retirementShape }]];
}

/** A member that runs an instance says so, with the form of its messages. */
export const announcement = (setting: Setting): { type: "open"; form: number } & Setting => ({
  type: "open",
  ...setting,
  form: messageForm(setting),
});

const forms = new Map<string, number>();

/** What tells the messages of an algorithm apart on the wire, 0 of an unknown one: a release in which they look otherwise has another number. */
export function messageForm({ kind, algorithm }: Pick<Setting, "kind" | "algorithm">): number {
  if (forms.size === 0) {
    for (const known of ["election", "mutex", "channel"] as const)
      for (const [name, content] of contentsOf(known)) forms.set(`${known}/${name}`, formOf(name, struct(content)));
  }
  return forms.get(`${kind}/${algorithm}`) ?? 0;
}

/** The options as they are compared and sent: canonical JSON. @throws UsageError for what is not plain data, or too long. */
export function optionsText(options: object): string {
  const text = canonical(JSON.parse(JSON.stringify(options)));
  if (Buffer.byteLength(text) <= MAX_OPTIONS_BYTES) return text;
  throw new UsageError("bad-option", unexpected("the options", `at most ${MAX_OPTIONS_BYTES} bytes of JSON`, text));
}

/** What is refused, in at most as many bytes as fit the wire. */
export const reasonText = (why: string): string =>
  Buffer.byteLength(why) <= MAX_REASON_BYTES ? why : `${why.slice(0, MAX_REASON_BYTES / 4)} …`;
