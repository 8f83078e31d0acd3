/** What following a recording came to, as data and in sentences. */
import type { Vocabulary } from "../core/protocol.ts";
import type { Trace } from "../trace/file.ts";
import type { Replay } from "../trace/replay.ts";
import type { ReplayFinding } from "../trace/replay-findings.ts";
import { spans } from "./paragraph.ts";

/** The JSON of `coterie trace FILE`, with `--check`, `--until` or both. */
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

/** Why the recording does not show that all properties hold; null where it does. */
export function notShown({ findings, verdict }: Pick<Replay<Vocabulary>, "findings" | "verdict">): string | null {
  const violated = findings.flatMap((each) => (each.verdict === "violated" ? [each.property.name] : []));
  if (violated.length > 0) return `violated: ${violated.join(", ")}`;
  return verdict === "unknown" ? "the recording does not tell, which is no pass" : null;
}

/** A counterexample that never ends is cut off in a file, which its header says. */
export function repetition(
  { header: { violation } }: Trace,
  property: string,
  verdict: ReplayFinding<Vocabulary>["verdict"],
): string {
  const isEndless = verdict === "unknown" && violation?.property === property && violation.loopFrom !== null;
  return isEndless
    ? `, and the checker says that all from entry ${(violation.loopFrom ?? 0) + 1} on repeats for ever`
    : "";
}

/** Entries are handed over a few times a second, so what a process does just before it is killed stays with it. */
export function lostMoments({ header, entries }: Trace): string[] {
  const crashed = new Set(entries.flatMap(({ kind, node }) => (kind === "crash" ? [node] : [])));
  if (header.madeBy !== "cluster" || crashed.size === 0) return [];
  const who = `node${crashed.size === 1 ? "" : "s"} ${spans([...crashed])}`;
  return [`The last moment of ${who}, some 20 ms before the end of the process, may not be in the recording.`];
}
