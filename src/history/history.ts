/**
 * A history: the operations that clients called on a service, with their times and results. The terminology follows
 * Herlihy & Wing 1990 and Jepsen.
 *
 * Two operations are ordered only if one of them returned strictly before the other was called. Equal times imply no
 * order, even within one process: a clock that is too coarse to distinguish two moments must not turn a correct history
 * into a violation.
 */
import { UsageError, unexpected } from "../core/errors.ts";

/** The value of a field in an operation. Plain data, as it appears in a log. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [field: string]: Value };

/**
 * A client. A client that has a pending operation may make another call. In that case, both operations are open at the
 * same time.
 */
export type Process = number | string;

/** A call from a client, with its result. */
export interface Operation {
  /** The client that made the call. */
  readonly process: Process;
  /** The name of the operation, such as `write`. */
  readonly f: string;
  /**
   * The object that the operation is called on. Objects are checked separately, because linearizability is local
   * (ibid., §3.3).
   */
  readonly key: Value | undefined;
  /** The argument of the call. */
  readonly input: Value;
  /** The result of the call. `undefined` if no client received a result. */
  readonly output: Value | undefined;
  /** The time of the call, according to the log's clock. */
  readonly call: number;
  /**
   * The time of the return. `null` if the operation never returned, so it may take effect at any later time, or never.
   */
  readonly return: number | null;
  /** The line of the log that contains the call, for use in messages. Null if it did not come from a file. */
  readonly line: number | null;
}

/** The type of a line in a log: a call, or the end of a call. */
export type EventType = "invoke" | "ok" | "fail" | "info";

/** One line of a log. `fail`: the operation definitely did not happen. `info`: it may have happened. */
export interface HistoryEvent {
  /** The client that called the operation. */
  readonly process: Process;
  /** The type of the line. `invoke` is a call; the other types end one. */
  readonly type: EventType;
  /** The name of the operation, such as `write`. */
  readonly f: string;
  /** The argument of an `invoke` or the result of an `ok`. */
  readonly value: Value;
  /** The object that the operation is called on, if the log has more than one. */
  readonly key: Value | undefined;
  /** The time of the event, according to the log's clock. */
  readonly at: number;
  /** The line in the log, counting from 1. Null if the event did not come from a file. */
  readonly line: number | null;
}

/** An event other than an operation, such as a partition. It is drawn but not checked. */
export interface Remark {
  /** The time of the event, according to the log's clock. */
  readonly at: number;
  /** The label in the picture. */
  readonly text: string;
}

/** A history: operations, and remarks to show in the picture. */
export interface History {
  /** The operations, whether or not they returned. Failed operations are omitted. */
  readonly operations: readonly Operation[];
  /** Events that are drawn but not checked. */
  readonly remarks: readonly Remark[];
}

/** Pairs calls with returns. Failed operations are omitted. @throws UsageError if events contradict each other */
export function historyOf(events: readonly HistoryEvent[], remarks: readonly Remark[] = []): History {
  const inOrder = [...events].sort((a, b) => a.at - b.at); // The sort is stable: events with equal times stay in order.
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
