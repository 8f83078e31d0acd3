/**
 * A history: the operations that clients called on a service, with their times and results. The terms are those used by Herlihy
 * & Wing 1990 and by Jepsen.
 *
 * Two operations are ordered only if one returned strictly before the other was called. Equal times imply no order, even within
 * one process: a clock that is too coarse to distinguish two moments must not make a correct history a violation.
 */
import { UsageError, unexpected } from "../core/errors.ts";

/** Plain data, as in a log. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [field: string]: Value };

/** A client. A client with a pending operation may call again; the pending one remains open at the same time. */
export type Process = number | string;

/** A call of a client, with its result. */
export interface Operation {
  readonly process: Process;
  /** The name of the operation, such as `write`. */
  readonly f: string;
  /** The object of the call. Objects are checked separately, since linearizability is local (ibid., §3.3). */
  readonly key: Value | undefined;
  readonly input: Value;
  /** `undefined` if no client received it. */
  readonly output: Value | undefined;
  readonly call: number;
  /** `null` if it never returned. It may take effect at any later time, or never. */
  readonly return: number | null;
  /** The line of the log that contains its call, for messages. */
  readonly line: number | null;
}

/** The type of a line in a log: a call, or how it ended. */
export type EventType = "invoke" | "ok" | "fail" | "info";

/** One line of a log. `fail`: it certainly did not happen. `info`: it may have happened. */
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

/** An event other than an operation, such as a partition. It is drawn but not checked. */
export interface Remark {
  readonly at: number;
  readonly text: string;
}

/** A history: operations, and remarks for the picture. */
export interface History {
  readonly operations: readonly Operation[];
  readonly remarks: readonly Remark[];
}

/** Pairs calls with returns. Failed operations are omitted. @throws UsageError if events contradict each other */
export function historyOf(events: readonly HistoryEvent[], remarks: readonly Remark[] = []): History {
  const inOrder = [...events].sort((a, b) => a.at - b.at); // Stable: events of equal time stay in order.
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
