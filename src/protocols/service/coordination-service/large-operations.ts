/**
 * Operations that are longer than a command of the log may be. A session puts them to the log in parts, one such operation after the
 * other; what has come waits in the session, and the last part has the whole done. Parts are numbered operations of the session like
 * all others, so none is taken twice or left out, whoever leads; and what waits goes with the session.
 *
 * Until it is done it takes the room of what is held, and some beyond that: so however many sessions there are, they cannot fill memory
 * with parts, and of a state that is full a large value can be replaced.
 */
import { problem } from "../../../core/shape.ts";
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
import { type Applying, bytesOf, type Data, type Session, type Staged } from "./state.ts";

type Part = Extract<SessionOperation, { type: "part" }>;

/** @returns the operation, once it is whole; before, or if it is refused, what came of the part. */
export function takePart(
  on: Applying,
  session: Session,
  { number, isLast, text }: Part,
): { whole: Operation } | { result: Result } {
  if (number === 1) {
    dropParts(on.data, session); // Nobody waits for what was begun before.
    session.staged = { parts: 0, text: "", bytes: 0, refusal: null };
  }
  const { staged } = session;
  if (staged === null || staged.parts !== number - 1) {
    dropParts(on.data, session);
    return { result: refuse("bad-operation", `expected the parts of an operation in their order, got part ${number}`) };
  }
  staged.parts = number;
  staged.refusal ??= append(on, staged, text);
  if (!isLast) return { result: staged.refusal ?? { type: "done" } };
  dropParts(on.data, session);
  return staged.refusal === null ? read(staged.text, isClient(session.member)) : { result: staged.refusal };
}

/** What is held and what comes in parts may take so much more than what is held: a large value and what JSON adds. */
const PART_ROOM = 2_097_152;

/** @returns why it finds no room; then nothing of it is kept. */
function append({ data, limits }: Applying, staged: Staged, text: string): Refusal | null {
  const bytes = bytesOf(text);
  const refusal =
    staged.text.length + text.length > MAX_WHOLE_BYTES
      ? refuse("too-large", `an operation has at most ${MAX_WHOLE_BYTES} bytes`)
      : data.bytes + bytes > limits.maxBytes + PART_ROOM
        ? refuse("full", `the service holds ${data.bytes} bytes, and at most ${limits.maxBytes}`)
        : null;
  const change = refusal === null ? bytes : -staged.bytes;
  data.bytes += change;
  staged.bytes += change;
  staged.text = refusal === null ? staged.text + text : "";
  return refusal;
}

/** What waits in a session is forgotten. */
export function dropParts(data: Data, session: Session): void {
  data.bytes -= session.staged?.bytes ?? 0;
  session.staged = null;
}

/** Those that carry values. A member looks at what a client puts to the log, and a part does not show what it will be. */
const LARGE: ReadonlySet<string> = new Set(["put", "delete", "transaction", "enqueue", "say", "execute"]);

function read(text: string, isOfClient: boolean): { whole: Operation } | { result: Result } {
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return { result: refuse("bad-operation", "expected the parts of an operation to be JSON, and they do not parse") };
  }
  const fault = problem(operationShape, whole, "operation");
  if (fault !== null) return { result: refuse("bad-operation", fault.slice(0, 300)) };
  const operation = whole as Operation;
  if (LARGE.has(operation.type) && !(isOfClient && concernsOwnNames(operation))) return { whole: operation };
  return { result: refuse("bad-operation", `${operation.type} may not come in parts`) };
}

/** Whether it changes, or compares, what members keep for themselves, such as where they serve clients. */
export function concernsOwnNames(operation: Operation): boolean {
  if (operation.type === "execute") return isOwn(operation.machine);
  if (operation.type !== "transaction") return "map" in operation && isOwn(operation.map);
  const { compare, success, failure } = operation;
  return [...compare, ...success, ...failure].some(({ map }) => isOwn(map));
}
