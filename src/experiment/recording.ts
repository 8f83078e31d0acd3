/**
 * Interprets a trace file as a run of its protocol: which protocol ran, whether its properties hold, and its state at
 * any point.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId, Vocabulary } from "../core/protocol.ts";
import { type BehaviourName, byzantine, type NamedBehaviour, onProcesses } from "../protocols/byzantine.ts";
import { type AnyProtocol, protocolNamed, variantNamed } from "../protocols/index.ts";
import type { TraceHeader } from "../trace/entry.ts";
import { originOf } from "../trace/excerpt.ts";
import type { Trace } from "../trace/file.ts";
import { type Replay, Replaying, ReplayMoments, replay } from "../trace/replay.ts";
import type { Snapshot } from "../trace/snapshot.ts";
import type { ReplayFinding } from "../trace/watcher.ts";
import { spans } from "./paragraph.ts";
import type { Read } from "./written-values.ts";

/** A point in a run: a time in milliseconds on the trace's axis, or a number of entries. */
export type Point = { readonly ms: number } | { readonly entries: number };

/**
 * Parses a point: `1500` means 1,500 milliseconds, and `#57` means the first 57 entries. @throws UsageError for any
 * other text
 */
export function point(expected = "milliseconds, or #57 for the first 57 entries"): Read<Point> {
  return (text, word) => {
    if (/^#\d{1,9}$/.test(text)) return { entries: Number(text.slice(1)) };
    if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) return { ms: Number(text) };
    throw new UsageError("bad-argument", unexpected(word, expected, text));
  };
}

/** Returns the protocol in the form that ran. @throws UsageError if the protocol is not registered */
export function protocolOf({ protocol, form, variant, options, byzantine: liars = {} }: TraceHeader): AnyProtocol {
  if (protocol === "services")
    throw new UsageError(
      "bad-argument",
      "expected a recording of one protocol: members of join() run several, without common properties",
    );
  const entry = protocolNamed(protocol);
  const maker = variant === null ? entry[form] : variantNamed(protocol, variant).model;
  const honest = maker(options ?? {});
  const behaviours = Object.entries(liars).map(([node, how]) => [Number(node), how as NamedBehaviour] as const);
  return behaviours.length === 0 ? honest : byzantine(honest, new Map(behaviours));
}

/** Returns the number of entries before a point. @throws UsageError if the point is beyond the last entry */
function entriesUntil({ header, entries }: Trace, until: Point): number {
  if ("entries" in until) {
    if (until.entries <= entries.length) return until.entries;
    throw new UsageError("bad-argument", unexpected("--until", `at most #${entries.length}`, `#${until.entries}`));
  }
  const origin = originOf(header, entries);
  const next = entries.findIndex(({ at }) => at - origin > until.ms);
  return next === -1 ? entries.length : next;
}

/** Replays a trace up to a point, or as a whole. */
export function replayed(
  trace: Trace,
  until: Point | undefined,
  protocol: AnyProtocol = protocolOf(trace.header),
): Replay<Vocabulary> {
  const { header, entries } = trace;
  const known = beginningOf(header);
  if (until === undefined) return replay(protocol, header.nodes, entries as never[], known);
  // The recording ends with its last entry. Timers may have fired later.
  const last = entries.at(-1)?.at ?? 0;
  const at = "ms" in until ? { at: Math.min(originOf(header, entries) + until.ms, last) } : {};
  return replay(protocol, header.nodes, entries as never[], {
    ...known,
    until: entriesUntil(trace, until),
    ...at,
  });
}

/** The number of entries between two calls of `continues`. */
const CHECKED_ENTRIES = 1_000;

/**
 * Checks the properties of a whole trace. If `continues` returns false, properties that have not been violated by then
 * become `unknown`.
 */
export function checkedWithin(
  { header, entries }: Trace,
  continues: (entries: number) => boolean,
): Pick<Replay<Vocabulary>, "findings"> {
  const protocol = protocolOf(header);
  const run = new Replaying<Vocabulary>(protocol, header.nodes, entries as never[], beginningOf(header));
  let count = 0;
  while (count < entries.length && (count % CHECKED_ENTRIES !== 0 || count === 0 || continues(count)))
    run.walk(count++);
  const { findings } = run.conclude(entries[count - 1]?.at ?? 0);
  if (count === entries.length) return { findings };
  const why = `only the first ${count} of ${entries.length} entries were checked`;
  return {
    findings: findings.map((finding) =>
      finding.verdict === "violated" ? finding : { ...finding, verdict: "unknown", why },
    ),
  };
}

const beginningOf = ({ madeBy, states = {} }: TraceHeader) => ({ hasRealSignatures: madeBy === "cluster", states });

/** Returns an object that replays to many points of a trace, without checking properties. */
export const momentsOf = ({ header, entries }: Trace): ReplayMoments<Vocabulary> =>
  new ReplayMoments<Vocabulary>(protocolOf(header), header.nodes, entries as never[], beginningOf(header));

/**
 * Returns a mark for the message ids of a continuation. No existing message uses this mark, even if the run has already
 * been continued from this moment.
 */
function freshMark(at: number, entries: Trace["entries"]): string {
  const marks = new Set(entries.flatMap((entry) => (entry.kind === "send" ? [/@.*-/.exec(entry.id)?.[0] ?? ""] : [])));
  let mark = `@${at}-`;
  for (let time = 2; marks.has(mark); time++) mark = `@${at}_${time}-`;
  return mark;
}

/** The state of a recorded run at some point. A simulation can continue from it. */
export interface RecordedPoint {
  readonly header: TraceHeader;
  readonly protocol: AnyProtocol;
  readonly snapshot: Snapshot<Vocabulary>;
  /** The time on the snapshot's clock that is shown as 0 on the trace's axis. */
  readonly origin: number;
}

/**
 * Returns the state at a point of a recording, so that a simulation can continue from there.
 * @param file the path of the recording, for error messages
 * @throws UsageError if that state is unknown, because entries are missing or do not match the protocol
 */
export function snapshotFrom(trace: Trace, file: string, until: Point): RecordedPoint {
  const last = (trace.entries.at(-1)?.at ?? 0) - originOf(trace.header, trace.entries);
  if ("ms" in until && until.ms > last)
    throw new UsageError(
      "bad-argument",
      unexpected("--until", `at most ${last} ms, when the recording ends`, until.ms),
    );
  const protocol = protocolOf(trace.header);
  const { snapshot, doubts, lost } = replayed(trace, until, { ...protocol, properties: [] });
  const doubt = doubts.find(({ node }) => lost.includes(node));
  if (doubt !== undefined)
    throw new UsageError(
      "bad-trace",
      `${file}: expected every state at that point to be known, but the state of node ${doubt.node} is unknown from entry ${doubt.entry + 1} on: ${doubt.sentence}`,
    );
  return {
    header: trace.header,
    protocol,
    snapshot: { ...snapshot, idMark: freshMark(snapshot.at, trace.entries.slice(0, entriesUntil(trace, until))) },
    origin: originOf(trace.header, trace.entries),
  };
}

/** Returns the Byzantine nodes as a field of a trace header. Empty if there are none. */
export const liarsIn = (byzantine: NonNullable<TraceHeader["byzantine"]> = {}): Pick<TraceHeader, "byzantine"> =>
  Object.keys(byzantine).length === 0 ? {} : { byzantine };

/** Returns the header for a trace that real processes record. */
export function recordingHeader(
  protocol: string,
  nodes: readonly NodeId[],
  liars: Readonly<Record<NodeId, BehaviourName>> = {},
): TraceHeader {
  const byzantine = Object.fromEntries(Object.entries(liars).map(([node, how]) => [node, onProcesses(how)]));
  return {
    kind: "trace",
    version: 1,
    madeBy: "cluster",
    protocol,
    form: "node",
    variant: null,
    options: {},
    nodes,
    seed: null,
    ...liarsIn(byzantine),
    violation: null,
  };
}

/** Returns the JSON output of `coterie trace FILE` with `--check`, `--until` or both. */
export function replayReport(
  { header }: Trace,
  { verdict, findings, doubts, steps, snapshot }: Replay<Vocabulary>,
  { check, until }: { readonly check?: true; readonly until?: unknown },
) {
  const properties = findings.map(({ property: { name, claim }, ...finding }) => ({ name, claim, ...finding }));
  return {
    protocol: header.protocol,
    nodes: header.nodes.length,
    ...(check === true ? { verdict, properties, doubts, steps } : {}),
    ...(until === undefined ? {} : { snapshot }),
  };
}

/** Explains why the recording does not show that all properties hold. Null if it does show that. */
export function notShown({ findings, verdict }: Pick<Replay<Vocabulary>, "findings" | "verdict">): string | null {
  const violated = findings.flatMap((each) => (each.verdict === "violated" ? [each.property.name] : []));
  if (violated.length > 0) return `violated: ${violated.join(", ")}`;
  return verdict === "unknown" ? "the recording does not show it (not a pass)" : null;
}

/**
 * Returns a note about an infinite counterexample. Its file is finite, and the header marks the part that repeats
 * forever.
 */
export function repetition(
  { header: { violation } }: Trace,
  property: string,
  verdict: ReplayFinding<Vocabulary>["verdict"],
): string {
  const isEndless = verdict === "unknown" && violation?.property === property && violation.loopFrom !== null;
  return isEndless
    ? `, and in the checker everything from entry ${(violation.loopFrom ?? 0) + 1} on repeats forever`
    : "";
}

/**
 * Returns a warning about crashed processes. Entries are sent every 20 ms, so the last ones before a kill may be
 * missing.
 */
export function lostMoments({ header, entries }: Trace): string[] {
  const crashed = new Set(entries.flatMap(({ kind, node }) => (kind === "crash" ? [node] : [])));
  if (header.madeBy !== "cluster" || crashed.size === 0) return [];
  const who = `node${crashed.size === 1 ? "" : "s"} ${spans([...crashed])}`;
  return [`The last moment of ${who}, about 20 ms before the process ended, may be missing from the recording.`];
}
