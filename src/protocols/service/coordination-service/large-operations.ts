/**
 * Operations that are too long for one log entry. A session proposes such an operation in parts, and only one such
 * operation at a time. The parts are stored in the session, and the last part executes the operation. Like all of a
 * session's operations, parts are numbered, so none is applied twice or skipped, no matter which node leads. Pending
 * parts are lost when the session ends.
 *
 * Pending parts count toward the size of the state, but have some extra room. Therefore, they cannot exhaust the
 * memory, no matter how many sessions exist, and a large value can still be replaced when the state is full.
 */
import { problem } from "../../../core/shape.ts";
import { bytesOf } from "../keyspace/text-size.ts";
import {
  isClient,
  isOwn,
  MAX_WHOLE_BYTES,
  type Operation,
  operationShape,
  type Refusal,
  type Result,
  refuse,
  type SessionOperation,
} from "./operations.ts";
import { type Applying, type Data, refuseFull, type Session, type Staged, sizeOf } from "./state.ts";

type Part = Extract<SessionOperation, { type: "part" }>;

/** Returns the operation if it is now complete, or otherwise the result of adding this part. */
export function takePart(
  on: Applying,
  session: Session,
  { number, isLast, text }: Part,
): { whole: Operation } | { result: Result } {
  if (number === 1) {
    dropParts(on.data, session); // The session has abandoned its previous operation.
    session.staged = { parts: 0, text: "", bytes: 0, refusal: null };
  }
  const { staged } = session;
  if (staged === null || staged.parts !== number - 1) {
    dropParts(on.data, session);
    return { result: refuse("bad-operation", `expected the parts of an operation in order, got part ${number}`) };
  }
  staged.parts = number;
  staged.refusal ??= append(on, staged, text);
  if (!isLast) return { result: staged.refusal ?? { type: "done" } };
  dropParts(on.data, session);
  return staged.refusal === null ? read(staged.text, isClient(session.member)) : { result: staged.refusal };
}

/** The extra room that parts have beyond the state's size limit: enough for one large value and its JSON overhead. */
const PART_ROOM = 2_097_152;

/** Appends a part to the stored text. If there is not enough room, drops the text and returns the refusal. */
function append({ data, limits }: Applying, staged: Staged, text: string): Refusal | null {
  const bytes = bytesOf(text);
  const refusal =
    staged.text.length + text.length > MAX_WHOLE_BYTES
      ? refuse("too-large", `an operation has at most ${MAX_WHOLE_BYTES} bytes`)
      : sizeOf(data) + bytes > limits.maxBytes + PART_ROOM
        ? refuseFull({ data, limits })
        : null;
  const change = refusal === null ? bytes : -staged.bytes;
  data.bytes += change;
  staged.bytes += change;
  staged.text = refusal === null ? staged.text + text : "";
  return refusal;
}

/** Drops a session's pending parts. */
export function dropParts(data: Data, session: Session): void {
  data.bytes -= session.staged?.bytes ?? 0;
  session.staged = null;
}

/**
 * The operations that may be split into parts, which are those with values. The type must be checked here: a member
 * checks its clients' operations, but a part does not show the operation's type.
 */
const LARGE: ReadonlySet<string> = new Set(["put", "delete", "transaction", "keys", "enqueue", "say", "execute"]);

function read(text: string, isOfClient: boolean): { whole: Operation } | { result: Result } {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return { result: refuse("bad-operation", "expected the parts of an operation to form valid JSON") };
  }
  const fault = problem(operationShape, whole, "operation");
  if (fault !== null) return { result: refuse("bad-operation", fault.slice(0, 300)) };
  const operation = whole as Operation;
  if (LARGE.has(operation.type) && !(isOfClient && concernsOwnNames(operation))) return { whole: operation };
  return { result: refuse("bad-operation", `${operation.type} must not be split into parts`) };
}

/** Returns whether the operation uses names that are reserved for members, such as the map of addresses for clients. */
export function concernsOwnNames(operation: Operation): boolean {
  if (operation.type === "keys") return true;
  if (operation.type === "execute") return isOwn(operation.machine);
  if (operation.type !== "transaction") return "map" in operation && isOwn(operation.map);
  const { compare, success, failure } = operation;
  return [...compare, ...success, ...failure].some(({ map }) => isOwn(map));
}
