/**
 * A history: what clients asked of a service, when, and what they learnt. Words of Herlihy & Wing 1990 and of Jepsen.
 *
 * Two operations are ordered only if one returned strictly before the other was called. Equal times order nothing, even
 * within one process: a clock too coarse to tell two moments apart must not turn a sound history into a violation.
 */
import { UsageError, unexpected } from "../core/errors.ts";

/** Plain data, as a log holds it. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [field: string]: Value };

/** A client. One that leaves an operation open may call again: whatever it left open goes on beside. */
export type Process = number | string;

export interface Operation {
  readonly process: Process;
  /** What was called, such as `write`. */
  readonly f: string;
  /** The object it was called on. Objects are checked one by one, since linearizability is local (ibid., §3.3). */
  readonly key: Value | undefined;
  readonly input: Value;
  /** `undefined` when nobody learnt it. */
  readonly output: Value | undefined;
  readonly call: number;
  /** `null` when it never returned: it may take effect at any later time, or never. */
  readonly return: number | null;
  /** The line of the log that holds its call, for messages. */
  readonly line: number | null;
}

export type EventType = "invoke" | "ok" | "fail" | "info";

/** One line of a log. `fail`: it certainly did not happen. `info`: it may have happened, nobody knows. */
export interface HistoryEvent {
  readonly process: Process;
  readonly type: EventType;
  readonly f: string;
  /** The argument of an `invoke`, the result of an `ok`. */
  readonly value: Value;
  readonly key: Value | undefined;
  readonly at: number;
  readonly line: number | null;
}

/** Something that happened around the operations, such as a partition: drawn, not checked. */
export interface Remark {
  readonly at: number;
  readonly text: string;
}

export interface History {
  readonly operations: readonly Operation[];
  readonly remarks: readonly Remark[];
}

/** Pairs calls with returns. Failed operations are left out. @throws UsageError where the events contradict each other. */
export function historyOf(events: readonly HistoryEvent[], remarks: readonly Remark[] = []): History {
  const inOrder = [...events].sort((a, b) => a.at - b.at); // Stable: equal times stay in the order of the log.
  const open = new Map<Process, HistoryEvent>();
  const operations: Operation[] = [];
  for (const event of inOrder) {
    const call = open.get(event.process);
    if (event.type === "invoke") {
      if (call !== undefined) throw misplaced(event, "ok, fail or info", `its ${call.f}${lineOf(call)} is still open`);
      open.set(event.process, event);
      continue;
    }
    if (call === undefined) throw misplaced(event, "invoke", "it has nothing open");
    if (event.f !== call.f) throw contradiction(event, unexpected("f", `${call.f}, as called${lineOf(call)}`, event.f));
    open.delete(event.process);
    if (event.type !== "fail") operations.push(operation(call, event));
  }
  for (const call of open.values()) operations.push(operation(call, null));
  return { operations: operations.sort((a, b) => a.call - b.call), remarks };
}

function operation(call: HistoryEvent, end: HistoryEvent | null): Operation {
  const isKnown = end?.type === "ok";
  return {
    process: call.process,
    f: call.f,
    key: call.key ?? end?.key,
    input: call.value,
    output: isKnown ? end.value : undefined,
    call: call.at,
    return: isKnown ? end.at : null,
    line: call.line,
  };
}

function misplaced(event: HistoryEvent, expected: string, why: string): UsageError {
  return contradiction(event, `${unexpected("type", expected, event.type)}: of process ${event.process} ${why}`);
}

const contradiction = (event: HistoryEvent, message: string): UsageError =>
  new UsageError("bad-history", event.line === null ? message : `line ${event.line}: ${message}`);

const lineOf = ({ line }: HistoryEvent): string => (line === null ? "" : ` in line ${line}`);
